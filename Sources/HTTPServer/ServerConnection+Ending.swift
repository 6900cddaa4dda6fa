import HTTP2
import HTTPMessage
import Reactor

// The end of a program's connection, and its hand-over.
extension ServerConnection {
    /// Limit of bytes discarded after an early answer. Up to this limit, a program that reads only after sending its
    /// whole request still gets the answer.
    private static let maxDiscarded = 64 << 20
    /// Time limit for a program to close after its last answer was sent.
    private static let lingerTimeout = Timeout(.seconds(2))

    public func close(cut: Bool, code: HTTP2Code?) {
        guard cut, phase != .closed else { return close() }
        stream.endAsCut()
        waits = StreamWaits()
        setDeadline(after: .off)
        switch framing {
        // The program misses bytes that the framing promises, so an end suffices.
        case .length where phase == .busy, .chunked where phase == .busy: phase = .closing
        case .none, .length, .chunked, .untilClose: phase = .resetting
        }
        scheduleFlush()
    }

    public func closeConnection() { close() }

    func close() {
        guard phase != .closed else { return }
        phase = .closed
        setDeadline(after: .off)
        stream.close()
        server.connectionEnded(self)
        handler = nil
        multiplexed?.end(.gone)
    }

    // MARK: After the last answer

    func closeAfterOutput() {
        guard !output.isEmpty else { return close() }
        phase = .closing
        scheduleFlush()
    }

    func finishClosing() {
        // With unread input, closing could send a reset that overtakes the answer (RFC 9112, section 9.6).
        if reader.isQuiet { return close() }
        stream.shutdownWriting()
        phase = .lingering
        discarded = 0
        setDeadline(.linger, after: Self.lingerTimeout)
        discardInput()
    }

    /// Resets the connection once the program has acknowledged all bytes, because a reset destroys the others. The
    /// kernel does not report acknowledgements: looks again after increasing times.
    func resetAfterOutput(_ wait: UInt64 = 5_000_000) {
        guard stream.unacknowledged > 0, wait < server.settings.outputTimeout.nanoseconds ?? .max else {
            stream.resetOnClose()
            return close()
        }
        setDeadline(ConnectionDeadline(.acknowledgement, at: now.advanced(by: wait), since: now))
    }

    /// Discards the program's further bytes, a limited number in each turn and in total.
    func discardInput() {
        guard let count = reader.discard(from: stream, limit: Self.maxDiscarded - discarded) else { return leave() }
        discarded += count
        if phase == .lingering, reader.input.hasEnded || discarded > Self.maxDiscarded { return close() }
        if reader.input.canRead, discarded <= Self.maxDiscarded { goOnNextTurn() }
    }

    // MARK: Before the last answer

    /// Ends the connection of a program that left or is cut off.
    func leave(_ leaving: ProgramLeaving = .gone) {
        guard phase != .closed else { return }
        let (wasBusy, handler) = (phase == .busy, handler)
        multiplexed?.end(leaving)
        // After a hand-over, the handler owns the stream and ends it.
        if phase == .handedOver { handler?.programLeft(leaving) }
        close()
        if wasBusy { handler?.programLeft(leaving) }
    }

    /// Prepares the end because the server or the listener stops. An idle connection closes after `drainIdleTimeout`,
    /// a busy one after its answer. A wait begun by `setIdleDeadline` ends in `drainIdleTimeout` at the latest.
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

    /// Closes an idle connection. Requests that have already arrived are answered first.
    func closeIdle() {
        guard phase == .readingHead, reader.input.isEmpty else { return close() }
        _ = reader.input.note(.readable)
        guard reader.lookForInput(at: stream) else { return leave() }
        if reader.input.isEmpty { close() } else { readHeads() }
    }

    func makeRoom() {
        if phase == .multiplexed, let multiplexed { multiplexed.sendLastGoAway() } else { close() }
    }

    /// Ends the connection of a program that may send no more requests. A request or tunnel under way is cut.
    public func expire() {
        switch phase {
        case .readingHead: reader.input.isEmpty && output.isEmpty ? closeIdle() : closeAfterOutput()
        case .multiplexed: multiplexed?.cut()
        case .busy, .handedOver: cut()
        case .closing, .resetting, .lingering, .closed: break
        }
    }

    /// Ends the connection at the stop of the server. A request without an answer may get one.
    func stop() {
        if phase == .busy { handler?.serverStops() }
        // What the kernel does not take now is lost.
        if phase == .closing { flush() }
        cut(.stopped)
    }

    /// Ends the connection at once, even in the middle of an answer.
    func cut(_ leaving: ProgramLeaving = .cutOff) {
        if phase == .busy || phase == .multiplexed || phase == .resetting { stream.resetOnClose() }
        leave(leaving)
    }

    // MARK: Hand-over

    public func wrapStream(_ make: (any ByteStream, consuming ByteBuffer) -> (any ByteStream)?) -> Bool {
        guard phase == .busy, output.flush(to: stream) == 0 else { return false }
        var received = ByteBuffer()
        received.append(reader.input.buffer.bytes)
        guard let wrapped = make(stream, received) else { return false }
        stream = wrapped
        reader.input.restart()
        do throws(SystemError) { try wrapped.register(self) } catch { return false }
        return true
    }

    public func handOver(
        _ take: (HandedOverStream, _ input: Span<UInt8>, _ output: Span<UInt8>) throws(SystemError) -> Void
    ) throws(SystemError) {
        let program = HandedOverStream(stream: stream, isEnding: reader.input.isEnding, hasEnded: reader.input.hasEnded)
        try reader.input.buffer.withBytes { received throws(SystemError) in
            try output.buffer.withBytes { unsent throws(SystemError) in try take(program, received, unsent) }
        }
        phase = .handedOver
        setDeadline(after: .off)
        reader.input.buffer.release()
        output.release()
    }
}
