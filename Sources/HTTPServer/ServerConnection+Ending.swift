import Reactor

// How a client's connection ends, or is given away.
extension ServerConnection {
    /// Of a request that was answered before its end, so much is read and thrown away: a program that sends all before
    /// it reads still gets the answer.
    private static let maxDiscarded = 64 << 20
    /// So long a client has to take its last answer once it is all sent.
    private static let lingerTimeout = Timeout(.seconds(2))

    /// The client has a part of an answer that will never be whole: resets the connection. `clientLeft` is not called.
    public func cut() {
        guard phase != .closed else { return }
        socket.resetOnClose()
        close()
    }

    /// Ends it now: what was not sent is lost.
    public func close() {
        guard phase != .closed else { return }
        phase = .closed
        clearDeadline()
        socket.close()
        server.connectionEnded(self)
        handler = nil
    }

    // MARK: Behind the last answer

    func closeBehindOutput() {
        guard !output.isEmpty else { return close() }
        phase = .closing
        scheduleFlush()
    }

    func finishClosing() {
        // Otherwise a reset could overtake the answer (RFC 9112, section 9.6).
        if reader.isQuiet { return close() }
        socket.shutdownWriting()
        phase = .lingering
        discarded = 0
        setDeadline(.linger, after: Self.lingerTimeout)
        discardInput()
    }

    /// Throws away what the client still sends, a part of it each turn, and not without end.
    func discardInput() {
        guard let count = reader.discard(from: socket, limit: Self.maxDiscarded - discarded) else { return leave() }
        discarded += count
        if phase == .lingering, reader.input.hasEnded || discarded > Self.maxDiscarded { return close() }
        if reader.input.canRead, discarded <= Self.maxDiscarded { goOnNextTurn() }
    }

    // MARK: Before that

    /// The client is gone, or is given up.
    func leave(_ leaving: ClientLeaving = .gone) {
        guard phase != .closed else { return }
        let (wasBusy, handler) = (phase == .busy, handler)
        // The handler that took the socket over ends it.
        if phase == .handedOver { handler?.clientLeft(self, leaving) }
        close()
        if wasBusy { handler?.clientLeft(self, leaving) }
    }

    /// The server, or its listener, stops: an idle connection closes once it was idle for long enough, a busy one after its
    /// answer.
    func drain() {
        guard phase == .readingHead, reader.input.isEmpty, output.isEmpty, deadline.kind != .farewell else { return }
        let left = server.settings.farewell - (idleSince.map { now.since($0) } ?? .zero)
        left > .zero ? setDeadline(.farewell, after: Timeout(left)) : closeIdle()
    }

    /// Ends it between two requests. What has come by now is answered first.
    func closeIdle() {
        guard phase == .readingHead, reader.input.isEmpty else { return close() }
        _ = reader.input.note(.readable)
        guard reader.lookForInput(at: socket) else { return leave() }
        if reader.input.isEmpty { close() } else { readHeads() }
    }

    /// The server has stopped waiting.
    func stop() {
        if phase == .busy { socket.resetOnClose() }
        leave(.cutOff)
    }

    // MARK: Given away

    /// A client's socket that is given away.
    public struct HandedOver {
        public let socket: StreamSocket
        /// Its end has been announced.
        public let isEnding: Bool
        /// All of it up to its end has been read.
        public let hasEnded: Bool
    }

    /// Gives the socket away, for bytes that are no HTTP. The connection stays in the server's count until `close`.
    ///
    /// - Parameter take: is given the socket, what was read behind the request's head, and what still has to be written.
    ///   If it throws, nothing is given away.
    public func handOver<Failure: Error>(
        _ take: (HandedOver, _ input: Span<UInt8>, _ output: Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        let client = HandedOver(socket: socket, isEnding: reader.input.isEnding, hasEnded: reader.input.hasEnded)
        try reader.input.buffer.withBytes { received throws(Failure) in
            try output.buffer.withBytes { unsent throws(Failure) in try take(client, received, unsent) }
        }
        phase = .handedOver
        clearDeadline()
        reader.input.buffer.release()
        output.release()
    }
}
