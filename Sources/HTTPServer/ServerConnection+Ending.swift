import HTTP2
import Reactor

// How a client's connection ends, or is handed over.
extension ServerConnection {
    /// Limit of bytes discarded after an early answer. A program that sends its whole request before it reads still
    /// gets the answer.
    private static let maxDiscarded = 64 << 20
    /// Time for a client to take its last answer after all of it was sent.
    private static let lingerTimeout = Timeout(.seconds(2))

    public func close(cut: Bool, code: HTTP2Code?) {
        guard phase != .closed else { return }
        if cut { stream.resetOnClose() }
        close()
    }

    func close() {
        guard phase != .closed else { return }
        phase = .closed
        setDeadline(after: .off)
        stream.close()
        server.connectionEnded(self)
        handler = nil
        multiplexed?.end(.gone)
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
        stream.shutdownWriting()
        phase = .lingering
        discarded = 0
        setDeadline(.linger, after: Self.lingerTimeout)
        discardInput()
    }

    /// Discards the client's further bytes, a limited number in each turn and in total.
    func discardInput() {
        guard let count = reader.discard(from: stream, limit: Self.maxDiscarded - discarded) else { return leave() }
        discarded += count
        if phase == .lingering, reader.input.hasEnded || discarded > Self.maxDiscarded { return close() }
        if reader.input.canRead, discarded <= Self.maxDiscarded { goOnNextTurn() }
    }

    // MARK: Before that

    /// Ends the connection of a client that is gone or given up.
    func leave(_ leaving: ClientLeaving = .gone) {
        guard phase != .closed else { return }
        let (wasBusy, handler) = (phase == .busy, handler)
        multiplexed?.end(leaving)
        // After a hand-over the handler owns the stream's end.
        if phase == .handedOver { handler?.clientLeft(leaving) }
        close()
        if wasBusy { handler?.clientLeft(leaving) }
    }

    /// Prepares the end while the server, or its listener, stops. An idle connection closes once it was idle for long
    /// enough, a busy one after its answer.
    func drain() {
        multiplexed?.drain()
        if phase == .busy, deadline.kind == .handlerIdle {
            let end = now + server.settings.drainIdleTimeout
            if end < deadline.time { setDeadline(.handler, after: Timeout(server.settings.drainIdleTimeout)) }
            return
        }
        guard phase == .readingHead, reader.input.isEmpty, output.isEmpty, deadline.kind != .draining else { return }
        let left = server.settings.drainIdleTimeout - (idleSince.map { now.since($0) } ?? .zero)
        left > .zero ? setDeadline(.draining, after: Timeout(left)) : closeIdle()
    }

    /// Ends the connection between two requests. Requests that have arrived are answered first.
    func closeIdle() {
        guard phase == .readingHead, reader.input.isEmpty else { return close() }
        _ = reader.input.note(.readable)
        guard reader.lookForInput(at: stream) else { return leave() }
        if reader.input.isEmpty { close() } else { readHeads() }
    }

    func makeRoom() {
        if phase == .multiplexed, let multiplexed { multiplexed.endStreams() } else { close() }
    }

    /// Ends the connection when the server has stopped waiting.
    func stop() {
        if phase == .busy || phase == .multiplexed { stream.resetOnClose() }
        leave(.cutOff)
    }

    // MARK: Given away

    public func layStream(_ make: (any ByteStream, consuming ByteBuffer) -> (any ByteStream)?) -> Bool {
        guard phase == .busy, output.flush(to: stream) == 0 else { return false }
        var received = ByteBuffer()
        received.append(reader.input.buffer.bytes)
        guard let laid = make(stream, received) else { return false }
        stream = laid
        reader.input.restart()
        do throws(SystemError) { try laid.register(self) } catch { return false }
        return true
    }

    public func handOver(
        _ take: (HandedOver, _ input: Span<UInt8>, _ output: Span<UInt8>) throws(SystemError) -> Void
    ) throws(SystemError) {
        let client = HandedOver(stream: stream, isEnding: reader.input.isEnding, hasEnded: reader.input.hasEnded)
        try reader.input.buffer.withBytes { received throws(SystemError) in
            try output.buffer.withBytes { unsent throws(SystemError) in try take(client, received, unsent) }
        }
        phase = .handedOver
        setDeadline(after: .off)
        reader.input.buffer.release()
        output.release()
    }
}
