import Reactor

// A peer that has gone without a word.
extension Carrier {
    /// Limit for the acknowledgement of sent bytes.
    private static let silenceLimit = Duration.seconds(30)

    /// Begins to probe the peer. Other protocols may leave bytes unread for as long as they want.
    func watchPeer(_ socket: CurlSocket) {
        TCPPeer(socket.descriptor).probe()
        guard membership.use != .tunnel, membership.use != .socket else { return }
        TCPPeer(socket.descriptor).limitSilence(Self.silenceLimit)
        wire.hasSilenceLimit = true
    }

    /// Notes that the socket has no room. A peer that reads slowly is not gone: the exchange's own limits count.
    func blocked() {
        wire.canWrite = false
        guard wire.hasSilenceLimit, let socket else { return }
        wire.hasSilenceLimit = false
        TCPPeer(socket.descriptor).limitSilence(.zero)
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
