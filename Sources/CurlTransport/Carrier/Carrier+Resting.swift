import Reactor

// A connection that its owner keeps while it has no request: an HTTP/2 session.
extension Carrier {
    /// Whether HTTP/2 is spoken on it.
    public var speaksHTTP2: Bool { wire.speaksHTTP2 }

    /// Takes the bytes that an HTTP/2 server sent before it was asked.
    public func takeEarly() -> [UInt8] {
        defer { wire.early = [] }
        return wire.early
    }

    /// Time at which it gets too old for another request.
    public var youngUntil: LoopTime { membership.opened + pool.options.maxConnectionAge }

    /// Its owner has no request on it. If others need it, `carrierIsNeeded` says so.
    public func rest() {
        membership.isResting = true
        membership.idleSince = pool.now
        pool.carrierIsIdle()
    }

    /// Its owner uses it again.
    public func wake() { membership.isResting = false }

    /// Whether no request needs it.
    var isAtRest: Bool { phase == .idle || phase == .inUse && membership.isResting }

    /// Closes it for others.
    func giveUp() { if phase == .inUse, let owner { owner.carrierIsNeeded(self) } else { close() } }

    /// Asks the kernel whether bytes or the end have come that epoll has not reported. `receive` then gets them.
    public func hasNews() -> Bool {
        wire.canRead = true
        guard !wire.isPeerClosed, !wire.hasFailed, isEmpty else { return true }
        wire.canRead = false
        return false
    }
}
