import Reactor

extension ServerConnection {
    /// Whether an answer must say `Connection: close`.
    public var mustClose: Bool { server.isEnding(listener) }

    /// Writes the Date field with its line end, for answers that did not come from an upstream.
    public func appendDate(to output: inout ByteBuffer) { server.date.append(to: &output) }

    /// Appends to the output, which is written at the end of the loop's turn.
    public func write(_ append: (inout ByteBuffer) -> Void) {
        guard phase == .busy else { return }
        output.append(append)
        scheduleFlush()
    }

    /// Writes a piece of content and keeps the bytes that the kernel does not take.
    /// - Returns: `false` when the client is gone; `clientLeft` was called.
    public func write(body piece: Span<UInt8>) -> Bool {
        guard let count = write(some: piece) else { return false }
        if count < piece.count { output.append { $0.append(piece.extracting(count...)) } }
        return true
    }

    /// Writes as many bytes of a piece of content as the kernel takes, without a copy; a small piece waits for the end
    /// of the turn. If bytes are left, call `waitForRoom`.
    /// - Returns: the number of bytes taken; `nil` when the client is gone; `clientLeft` was called.
    public func write(some piece: Span<UInt8>) -> Int? {
        guard phase == .busy else { return nil }
        switch output.write(piece, to: stream) {
        case .kept:
            scheduleFlush()
            return piece.count
        case .written(let count): return count
        case .failed:
            leave()
            return nil
        }
    }

    /// The output is above its high-water mark, so nothing should be added.
    public var isFull: Bool { output.count > Self.highWater }

    /// Bytes that wait for the client.
    public var outputCount: Int { output.count }

    /// Calls `outputDrained` once there is room again. Replaces the handler's deadline: a client that takes nothing for
    /// the idle timeout is cut off.
    public func waitForRoom() {
        guard phase == .busy else { return }
        waits.forRoom = true
        waitForClient()
    }

    /// Ends our side after the output; the client's bytes still arrive. For protocols in which one side may end first.
    public func endOutput() {
        guard phase == .busy else { return }
        output.end()
        scheduleFlush()
    }

    /// Ends an answer that is completely in the output. Goes on with the next request, or closes. If the server began
    /// to stop after this answer's head was written, the connection serves one more request, whose answer says
    /// `Connection: close`.
    public func finish(keepsOpen: Bool) {
        guard phase == .busy else { return }
        let isComplete = reader.finish()
        phase = keepsOpen && isComplete ? .readingHead : .closing
        waits = Waits()
        clearDeadline()
        scheduleFlush()
        readHeads()
    }

    // MARK: Writing

    func scheduleFlush() {
        guard !schedule.flushes, phase != .closed else { return }
        schedule.flushes = true
        server.loop.atTurnEnd(self)
    }

    public func turnEnded() {
        schedule.flushes = false
        if phase != .closed, phase != .handedOver { flush() }
    }

    /// Writes as many bytes as the kernel takes, and sets the deadlines that follow.
    func flush() {
        guard let left = output.flush(to: stream) else { return leave() }
        if waits.forRoom, left <= Self.highWater / 2 {
            waits.forRoom = false
            if deadline.kind == .room { clearDeadline() }
            handler?.outputDrained(self)
            return
        }
        guard left == 0 else {
            // All bytes that went out count as progress of the client.
            if phase != .busy || waits.forRoom { waitForClient() }
            return
        }
        switch phase {
        case .closing: finishClosing()
        case .readingHead:
            if deadline.kind == .room { clearDeadline() }
            // A client that pipelines and reads without pause must let other connections have their turn.
            if reader.input.isWaiting { readHeads() } else { goOnNextTurn() }
        case .busy, .handedOver, .lingering, .closed: break
        }
    }
}
