import Reactor

// What goes out to the client.
extension ServerConnection {
    /// Whether an answer must say `Connection: close`.
    public var mustClose: Bool { server.isEnding(listener) }

    /// Writes the Date field and its line end, for answers that no upstream gave.
    public func appendDate(to output: inout ByteBuffer) { server.date.append(to: &output) }

    /// Appends to what goes out, in one piece at the end of the loop's turn.
    public func write(_ append: (inout ByteBuffer) -> Void) {
        guard phase == .busy else { return }
        output.append(append)
        scheduleFlush()
    }

    /// Writes a piece of content; what the kernel does not take waits.
    /// - Returns: false when the client is gone; `clientLeft` was called.
    public func write(body piece: Span<UInt8>) -> Bool {
        guard let count = write(some: piece) else { return false }
        if count < piece.count { output.append { $0.append(piece.extracting(count...)) } }
        return true
    }

    /// Writes as much of a piece of content as the kernel takes, without copying it; a small piece waits for the end of
    /// the turn. If something is left, call `waitForRoom`.
    /// - Returns: how much of it was taken; `nil` when the client is gone; `clientLeft` was called.
    public func write(some piece: Span<UInt8>) -> Int? {
        guard phase == .busy else { return nil }
        switch output.write(piece, to: socket) {
        case .kept:
            scheduleFlush()
            return piece.count
        case .written(let count): return count
        case .failed:
            leave()
            return nil
        }
    }

    /// So much waits for the client that no more should be added.
    public var isFull: Bool { output.count > Self.highWater }

    /// Bytes that wait for the client.
    public var outputCount: Int { output.count }

    /// Has `outputDrained` called when there is room again. Takes the place of the handler's deadline: a client that
    /// takes nothing for the idle timeout is cut off.
    public func waitForRoom() {
        guard phase == .busy else { return }
        waits.forRoom = true
        waitForClient()
    }

    /// Ends our side behind what stands in the output; what the client sends still comes. For protocols in which one side
    /// may end before the other.
    public func endOutput() {
        guard phase == .busy else { return }
        output.end()
        scheduleFlush()
    }

    /// The answer stands in the output. Goes on with the next request, or closes behind it. What the answer did not say is not
    /// done: where the server began to stop in the middle of it, there is one more.
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

    /// Writes what the kernel takes, and decides who waits for whom.
    func flush() {
        guard let left = output.flush(to: socket) else { return leave() }
        if waits.forRoom, left <= Self.highWater / 2 {
            waits.forRoom = false
            if deadline.kind == .room { clearDeadline() }
            handler?.outputDrained(self)
            return
        }
        guard left == 0 else {
            // Anything that went out counts as progress of the client.
            if phase != .busy || waits.forRoom { waitForClient() }
            return
        }
        switch phase {
        case .closing: finishClosing()
        case .readingHead:
            if deadline.kind == .room { clearDeadline() }
            // A client that pipelines and reads without end must let others have their turn.
            if reader.input.isWaiting { readHeads() } else { goOnNextTurn() }
        case .busy, .handedOver, .lingering, .closed: break
        }
    }
}
