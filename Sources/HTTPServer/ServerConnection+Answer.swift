import HTTPMessage
import Reactor

// The answer to the current request.
extension ServerConnection {
    @discardableResult
    public func answer(_ head: AnswerHead, reason: Span<UInt8>, fields: (inout ByteBuffer) -> Void) -> Int {
        guard phase == .busy else { return 0 }
        let before = output.count
        output.append { output in
            output.append("HTTP/1.1 ")
            output.append(decimal: UInt64(head.status))
            output.append(byte: UInt8(ascii: " "))
            output.append(reason)
            output.append("\r\n")
            if head.isOwn { server.date.append(to: &output) }
            fields(&output)
            if head.status >= 200 { frame(head, &output) }
            output.append("\r\n")
        }
        if head.status == 101 { reader.beginRaw() }
        if head.status == 200, reader.request.head.methodKind == .connect { reader.beginInside() }
        framing = head.framing
        scheduleFlush()
        return output.count - before
    }

    private func frame(_ head: AnswerHead, _ output: inout ByteBuffer) {
        if head.framing == .chunked { output.append("Transfer-Encoding: chunked\r\n") }
        if !head.keepsOpen {
            output.append("Connection: close\r\n")
        } else if reader.request.head.version == .http10 {
            output.append("Connection: keep-alive\r\n")
        }
    }

    /// Writes a large piece at once, without a copy. A small piece waits for the end of the turn.
    public func write(_ piece: Span<UInt8>, _ taking: PieceTaking) -> Int? {
        guard phase == .busy else { return nil }
        if taking != .all, isFull {
            waitForRoom()
            return 0
        }
        let isChunked = framing == .chunked
        if isChunked { output.append { $0.append(chunkOf: piece.count) } }
        var count = piece.count
        switch output.write(piece, to: stream) {
        case .kept: scheduleFlush()
        case .written(let written): count = written
        case .failed:
            close()
            return nil
        }
        if isChunked || taking != .part {
            // The size line of the chunk is already in the output, so the whole chunk must follow.
            output.append {
                if count < piece.count { $0.append(piece.extracting(count...)) }
                if isChunked { $0.append("\r\n") }
            }
            scheduleFlush()
            return piece.count
        }
        if count < piece.count { waitForRoom() }
        return count
    }

    /// A slow program stops its own upstream, when `write` does not take all bytes.
    public func answerRoom() -> Int { .max }

    public func mayReadAhead() -> Bool { true }

    var isFull: Bool { output.count > Self.highWater }

    func waitForRoom() {
        waits.forRoom = true
        waitForProgram()
    }

    public func endOutput() {
        guard phase == .busy else { return }
        output.end()
        scheduleFlush()
    }

    /// If the server began to stop after this answer's head was written, the connection serves one more request, whose
    /// answer says `Connection: close`.
    public func finish(trailers: [(name: [UInt8], value: [UInt8])], keepsOpen: Bool) {
        guard phase == .busy else { return }
        if framing == .chunked { output.append { $0.append(lastChunk: trailers) } }
        let isComplete = reader.finish()
        phase = keepsOpen && isComplete ? .readingHead : .closing
        waits = StreamWaits()
        setDeadline(after: .off)
        scheduleFlush()
    }

    // MARK: Writing

    func scheduleFlush() {
        guard !schedule.flushes, phase != .closed else { return }
        schedule.flushes = true
        server.loop.atTurnEnd(self)
    }

    public func turnEnded() {
        schedule.flushes = false
        // Begins pipelined requests before the flush, which can then send their answers too.
        if phase == .readingHead, !schedule.goesOn { readHeads() }
        if phase != .closed, phase != .handedOver { flush() }
    }

    /// Writes as many bytes as the kernel takes, and updates the deadline.
    func flush() {
        if phase == .multiplexed, let multiplexed { return multiplexed.flush() }
        guard let left = output.flush(to: stream) else { return leave() }
        if waits.forRoom, left <= Self.highWater / 2 {
            waits.forRoom = false
            if deadline.kind == .room { setDeadline(after: .off) }
            handler?.roomCame()
            return
        }
        guard left == 0 else {
            // Each byte sent counts as progress of the program.
            if phase != .busy || waits.forRoom { waitForProgram() }
            return
        }
        switch phase {
        case .closing: finishClosing()
        case .resetting: resetAfterOutput()
        case .readingHead:
            if deadline.kind == .room { setDeadline(after: .off) }
            // A program that pipelines and reads without pause must let other connections have their turn.
            if reader.input.isWaiting { readHeads() } else { goOnNextTurn() }
        case .busy, .handedOver, .multiplexed, .lingering, .closed: break
        }
    }
}
