import Reactor

// A peer that has gone without a word.
extension Carrier {
    /// Nanoseconds after which the kernel has sent the bytes three times on most networks.
    private static let reactionTime: UInt64 = 1_000_000_000

    /// Looks later whether the peer has acknowledged the next bytes. A timer that is set stays, because moving it would
    /// be a cost of each request.
    @inline(__always)
    func awaitReaction(_ now: LoopTime) {
        membership.busySince = now
        if !membership.awaitsReaction { lookForReaction(at: now.advanced(by: Self.reactionTime)) }
    }

    private func lookForReaction(at time: LoopTime) {
        membership.awaitsReaction = true
        if reactionTimer == nil, let loop = engine?.loop {
            reactionTimer = LoopTimer(on: loop) { [unowned self] in lookForReaction() }
        }
        reactionTimer?.schedule(at: time)
    }

    private func lookForReaction() {
        membership.awaitsReaction = false
        guard phase == .inUse, !membership.isResting, let socket else { return }
        let now = pool.now
        let due = membership.busySince.advanced(by: Self.reactionTime)
        if due > now { return lookForReaction(at: due) }
        switch TCPPeer(socket.descriptor).reaction(after: now.since(membership.busySince)) {
        case .heard: break
        case .unknown: lookForReaction(at: now.advanced(by: Self.reactionTime))
        case .none:
            pool.closeIdle(before: self)
            owner?.carrierIsSilent(self)
        }
    }
}

// Idle connections that stay with their owner between requests: HTTP/2 sessions.
extension Carrier {
    public var speaksHTTP2: Bool { wire.speaksHTTP2 }

    /// Returns and forgets the bytes that an HTTP/2 server sent before the session began.
    public func takeEarly() -> [UInt8] {
        defer { wire.early = [] }
        return wire.early
    }

    /// Time after which the connection is too old for another request.
    public var youngUntil: LoopTime { membership.opened + pool.options.maxConnectionAge }

    /// Marks the connection as idle. If the pool needs the connection, it calls `carrierIsNeeded`.
    public func rest() {
        membership.isResting = true
        membership.idleSince = pool.now
        pool.carrierIsIdle()
    }

    public func wake() {
        guard membership.isResting else { return }
        membership.isResting = false
        awaitReaction(pool.now)
    }

    var isAtRest: Bool { phase == .idle || phase == .inUse && membership.isResting }

    /// Makes the owner close the connection. Without an owner, closes it here.
    func giveUp() { if phase == .inUse, let owner { owner.carrierIsNeeded(self) } else { close() } }

    /// Whether bytes or an end may have arrived. Asks the kernel, because epoll may report them later.
    public func hasNews() -> Bool {
        wire.canRead = true
        guard !wire.isPeerClosed, !wire.hasFailed, isEmpty else { return true }
        wire.canRead = false
        return false
    }
}
