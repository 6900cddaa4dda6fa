import HTTPMessage
import Reactor

/// What comes from one client: its bytes, and of them the request that is being answered. One value, so that whatever is
/// done with it is one access.
struct RequestReader: ~Copyable {
    /// What looking for the next request's head came to.
    enum Step {
        /// It stands in `head`.
        case complete
        /// What is there is no request: its head, or what has come of its body so far.
        case refused(MessageError)
        /// Its end has not come.
        case partial
        /// Nothing is there.
        case nothing
        /// The client has ended its side, and no whole head is left.
        case ended
        /// The connection has failed.
        case failed
    }

    var input: SocketInput
    private(set) var head = RequestHead()
    private var headBytes = ByteBuffer()
    private var body = RequestBody()
    /// The request's body has been taken to its end.
    private(set) var isComplete = true

    init(_ spares: SpareBuffers) { input = SocketInput(spares) }

    // MARK: Heads

    /// Reads and parses until a head is whole, or nothing more is there.
    mutating func readHead(from socket: StreamSocket, _ settings: ServerSettings) -> Step {
        let limits = HeadLimits(maxBytes: settings.maxHeaderBytes, maxFields: settings.maxFields)
        while true {
            if input.canRead, input.count <= limits.maxBytes {
                guard input.fill(from: socket, limit: 16 * 1024) else { return .failed }
            }
            guard !input.isEmpty else {
                input.settle()
                return input.hasEnded ? .ended : .nothing
            }
            do throws(MessageError) {
                if case .complete(let length) = try Self.parse(&head, input.buffer, limits) {
                    return take(length)
                }
            } catch {
                giveUp(maxBytes: limits.maxBytes)
                return .refused(error)
            }
            if input.hasEnded { return .ended }
            guard input.canRead else { return .partial }
        }
    }

    private static func parse(
        _ head: inout RequestHead, _ bytes: borrowing ByteBuffer, _ limits: HeadLimits
    ) throws(MessageError) -> RequestHead.Status {
        try head.parse(bytes.bytes, limits: limits)
    }

    /// Takes the head off the input.
    private mutating func take(_ length: Int) -> Step {
        headBytes.removeAll()
        headBytes.append(first: length, of: input.buffer)
        input.buffer.consume(length)
        input.settle()
        body.begin(head.framing)
        isComplete = body.isDone
        // Before anything of the request is used: what is malformed from the start goes nowhere.
        do throws(MessageError) { try body.check(input.buffer) } catch { return .refused(error) }
        return .complete
    }

    /// What is there will not become a head. What it says so far can still be read.
    mutating func giveUp(maxBytes: Int) {
        // What follows is no request.
        isComplete = false
        headBytes.removeAll()
        headBytes.append(first: maxBytes, of: input.buffer)
        body.begin(.none)
    }

    /// Lends the head, and the bytes that it has ranges into.
    borrowing func withHead<Result, Failure: Error>(
        _ read: (RequestHead, Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try read(head, headBytes.bytes)
    }

    /// Reads what has come by now.
    /// - Returns: false when the connection has failed.
    mutating func lookForInput(at socket: StreamSocket) -> Bool {
        guard input.canRead else { return true }
        defer { input.settle() }
        return input.fill(from: socket, limit: 16 * 1024)
    }

    // MARK: Bodies

    /// Bytes of the body that were taken in this pass.
    var taken: UInt64 { body.taken }
    var trailers: [(name: [UInt8], value: [UInt8])] { body.trailers }
    var canRewind: Bool { !body.isSpent }

    /// Keeps what is taken of the body, up to `limit` bytes.
    mutating func keep(upTo limit: Int) { body.keep(upTo: limit) }

    /// - Returns: false when a part is gone; nothing has changed then.
    mutating func rewind() -> Bool {
        guard body.rewind() else { return false }
        isComplete = body.isDone
        return true
    }

    /// From here on all is body, as it is.
    mutating func beginRaw() {
        body.release(&input.buffer)
        body.begin(.untilClose)
        isComplete = false
    }

    /// Takes the next piece of the body.
    /// - Returns: `.gone` when the connection has failed.
    mutating func take(
        from socket: StreamSocket, into room: inout MutableSpan<UInt8>
    ) throws(MessageError) -> ServerConnection.BodyStep {
        while !body.isDone {
            if input.canRead, !isComplete, !body.isSatisfied(by: input.buffer, room: room.count) {
                guard input.fill(from: socket, limit: 64 * 1024) else { return .gone }
            }
            let count = try body.take(from: &input.buffer, into: &room)
            if body.isDone { isComplete = true }
            input.settle()
            if count > 0 { return .bytes(count) }
            if body.isDone { break }
            if input.canRead { continue }
            guard input.hasEnded else { return .wait }
            guard body.isRaw else { return .cut }
            isComplete = true
            return .end
        }
        return .end
    }

    // MARK: The end of a request

    /// What was kept of it goes; what follows is another one's.
    /// - Returns: whether it was taken to its end.
    mutating func finish() -> Bool {
        body.release(&input.buffer)
        head.reset()
        return isComplete
    }

    /// Nothing unread is left, as far as is known: an orderly close loses nothing.
    var isQuiet: Bool { isComplete && input.isEmpty && (!input.canRead || input.hasEnded) }

    /// Throws away what is there and what comes, a part of it in each turn.
    /// - Parameter limit: at most about so many bytes.
    /// - Returns: how many bytes came; `nil`: the connection has failed.
    mutating func discard(from socket: StreamSocket, limit: Int) -> Int? {
        input.buffer.removeAll()
        var (count, pieces) = (0, 0)
        while input.canRead, pieces < 16, count <= limit {
            guard input.fill(from: socket, limit: 64 * 1024) else { return nil }
            count += input.count
            input.buffer.removeAll()
            pieces += 1
        }
        input.settle()
        return count
    }
}
