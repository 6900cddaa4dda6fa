import Reactor

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

    public func wake() { membership.isResting = false }

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
