import HTTP2
import Reactor

// Reading a program's bytes, a limited share in each turn of the loop.
extension HTTP2ServerConnection {
    /// Handles bytes, and the events in them.
    /// - Returns: number of the bytes handled.
    private func take(_ bytes: Span<UInt8>) -> Int {
        var count = bytes.count
        attempt { session throws(HTTP2Error) in count = try session.receive(bytes, at: server.loop.now) }
        work += count + session.load.decoded
        handleEvents(bytes)
        scheduleFlush()
        return count
    }

    /// Handles the bytes read so far.
    /// - Returns: whether all were handled; `false` when the share is used up.
    private func takeInput() -> Bool {
        var bytes = ByteBuffer()
        swap(&bytes, &connection.reader.input.buffer)
        while !bytes.isEmpty || session.load.isPaused, connection.phase == .multiplexed, !hasFailed, life != .hungUp {
            guard work < Self.share, hasOutputRoom else { break }
            bytes.consume(take(bytes.bytes))
        }
        session.settle()
        guard connection.phase == .multiplexed else { return true }
        let isDone = bytes.isEmpty && !session.load.isPaused
        swap(&bytes, &connection.reader.input.buffer)
        connection.reader.input.settle()
        return isDone
    }

    /// Backpressure: nothing is read while much output waits for the program.
    private var hasOutputRoom: Bool { unsentOutput < ServerConnection.highWater }

    var unsentOutput: Int { connection.output.count }

    /// Whether bytes wait to be read or handled.
    var hasInput: Bool {
        connection.reader.input.canRead || !connection.reader.input.isEmpty || session.load.isPaused
    }

    func goOn() {
        receive()
        scheduleFlush()
    }

    /// Reads the bytes that have arrived, or leaves them to the next turn if this turn is full.
    func ready() { server.turnWork.isFull(in: server.loop.now) ? connection.goOnNextTurn() : receive() }

    func receive() {
        work = 0
        receiveShare()
        server.turnWork.add(work, in: server.loop.now)
    }

    private func receiveShare() {
        while connection.phase == .multiplexed, !hasFailed, life != .hungUp {
            work += 1
            guard takeInput() else { return hasOutputRoom ? connection.goOnNextTurn() : () }
            guard connection.phase == .multiplexed, !hasFailed, life != .hungUp else { return }
            // A program that has ended its side can't send the WINDOW_UPDATE frames that its answers need.
            if connection.reader.input.hasEnded { return connection.leave() }
            guard connection.reader.input.canRead, hasOutputRoom else { return }
            guard work < Self.share else { return connection.goOnNextTurn() }
            guard connection.reader.input.fill(from: connection.stream, limit: 64 * 1024) else {
                return connection.leave()
            }
        }
    }
}
