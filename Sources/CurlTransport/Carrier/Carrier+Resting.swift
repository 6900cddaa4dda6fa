import Reactor

// A connection that its owner keeps between requests: an HTTP/2 session.
extension Carrier {
    public var speaksHTTP2: Bool { wire.speaksHTTP2 }

    /// Takes the bytes that an HTTP/2 server sent before the session began.
    public func takeEarly() -> [UInt8] {
        defer { wire.early = [] }
        return wire.early
    }

    /// Time after which the connection is too old for another request.
    public var youngUntil: LoopTime { membership.opened + pool.options.maxConnectionAge }

    /// Marks the connection as idle. If the pool needs it, the owner gets `carrierIsNeeded`.
    public func rest() {
        membership.isResting = true
        membership.idleSince = pool.now
        pool.carrierIsIdle()
    }

    public func wake() { membership.isResting = false }

    var isAtRest: Bool { phase == .idle || phase == .inUse && membership.isResting }

    /// Has the owner close the connection; without an owner, closes it.
    func giveUp() { if phase == .inUse, let owner { owner.carrierIsNeeded(self) } else { close() } }

    /// Asks the kernel whether bytes or the end have arrived that epoll has not reported yet. `receive` then reads them.
    public func hasNews() -> Bool {
        wire.canRead = true
        guard !wire.isPeerClosed, !wire.hasFailed, isEmpty else { return true }
        wire.canRead = false
        return false
    }
}
