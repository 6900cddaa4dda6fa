import HTTPMessage
import Reactor

/// The input of one program: its bytes, and the current request. A single value, so that each operation needs only one
/// exclusive access.
struct RequestReader: ~Copyable {
    /// Result of looking for the next request's head.
    enum Step {
        /// The head is in `request`.
        case complete
        /// The head breaks a rule or a limit, or the start of the body is malformed.
        case refused(MessageError)
        case partial
        case nothing
        /// The program has ended its side without another whole head.
        case ended
        case failed
    }

    var input: StreamInput
    let request = ReceivedRequest()
    private var body = RequestBody()
    /// Whether the request's body has been read to its end.
    private(set) var isComplete = true

    init(_ spares: SpareBuffers) { input = StreamInput(spares) }

    // MARK: Heads

    /// Reads and parses until a head is complete or the stream is empty.
    mutating func readHead(from stream: any ByteStream, _ settings: ServerSettings) -> Step {
        let limits = settings.headLimits
        var removed = 0
        while true {
            if input.canRead, input.count <= limits.maxBytes {
                guard input.fill(from: stream, limit: 16 * 1024) else { return .failed }
            }
            guard !input.isEmpty else {
                input.settle()
                return input.hasEnded ? .ended : .nothing
            }
            do throws(MessageError) {
                if case .complete(let length) = try Self.parse(&request.content.head, input.buffer, limits) {
                    return take(length)
                }
            } catch {
                if error.status == 431, removeForeignCookies(settings, &removed) { continue }
                giveUp(maxBytes: limits.maxBytes)
                return .refused(error)
            }
            if input.hasEnded { return .ended }
            guard input.canRead else { return .partial }
        }
    }

    /// Makes room in a head that is too large.
    /// - Parameter removed: number of bytes that were removed in this turn of the loop.
    /// - Returns: whether bytes were removed, so that the head can be parsed again.
    private mutating func removeForeignCookies(_ settings: ServerSettings, _ removed: inout Int) -> Bool {
        guard let own = settings.ownCookies, removed <= ForeignCookies.mostBytes,
            let rest = ForeignCookies.removed(from: input.buffer.bytes, except: Array(own.description.utf8))
        else { return false }
        removed += input.count - rest.count
        input.buffer.removeAll()
        input.buffer.append(rest)
        request.content.head.reset()
        return true
    }

    static func parse(
        _ head: inout RequestHead, _ bytes: borrowing ByteBuffer, _ limits: HeadLimits
    ) throws(MessageError) -> RequestHead.Status {
        try head.parse(bytes.bytes, limits: limits)
    }

    private mutating func take(_ length: Int) -> Step {
        request.content.bytes.removeAll()
        request.content.bytes.append(first: length, of: input.buffer)
        input.buffer.consume(length)
        input.isAtStart = false
        input.settle()
        body.begin(request.content.head.framing)
        isComplete = body.isDone
        do throws(MessageError) { try body.check(input.buffer) } catch { return .refused(error) }
        return .complete
    }

    /// Gives up on a head that is malformed or late. Its bytes stay in `request`, where they can be examined.
    mutating func giveUp(maxBytes: Int) {
        // The bytes that follow are not a request.
        isComplete = false
        request.content.bytes.removeAll()
        request.content.bytes.append(first: maxBytes, of: input.buffer)
        body.begin(.none)
    }

    /// Uses `bytes` as the head of the current request. The unread input stays.
    mutating func replaceHead(by bytes: Span<UInt8>, _ settings: ServerSettings) throws(MessageError) {
        var head = RequestHead()
        guard case .complete = try head.parse(bytes, limits: settings.headLimits) else {
            throw MessageError(detail: "The head is incomplete.")
        }
        request.content.head = head
        begin(bytes)
    }

    /// Begins the request whose head was parsed from `bytes`.
    private mutating func begin(_ bytes: Span<UInt8>) {
        request.content.bytes.removeAll()
        request.content.bytes.append(bytes)
        body.begin(request.content.head.framing)
        isComplete = body.isDone
    }

    /// Reads the bytes that have arrived.
    /// - Returns: `false` when the connection has failed.
    mutating func lookForInput(at stream: any ByteStream) -> Bool {
        guard input.canRead else { return true }
        defer { input.settle() }
        return input.fill(from: stream, limit: 16 * 1024)
    }

    // MARK: Bodies

    var taken: UInt64 { body.taken }
    /// Whether bytes have arrived that were not read as a part of the body.
    var hasMore: Bool { input.count > body.offset }
    var canRewind: Bool { !body.isSpent }

    mutating func keep(upTo limit: Int) { body.keep(upTo: limit) }

    /// - Returns: `false`, without a change, if the first bytes were dropped.
    mutating func rewind() -> Bool {
        guard body.rewind() else { return false }
        isComplete = body.isDone
        return true
    }

    /// Treats all further bytes as the body, without framing: they are of another protocol.
    mutating func beginRaw() {
        body.release(&input.buffer)
        body.begin(.untilClose)
        isComplete = false
    }

    /// Treats the bytes after the current request, a CONNECT, as those of another connection.
    mutating func beginInside() { input.isAtStart = true }

    /// Reads the next piece of the body.
    /// - Returns: `.gone` when the connection has failed.
    mutating func take(
        from stream: any ByteStream, into room: inout MutableSpan<UInt8>
    ) throws(MessageError) -> BodyReading {
        while !body.isDone {
            if input.canRead, !isComplete, !body.isSatisfied(by: input.buffer, room: room.count) {
                guard input.fill(from: stream, limit: 64 * 1024) else { return .gone }
            }
            let count = try body.take(from: &input.buffer, into: &room)
            if body.isDone { complete() }
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

    private mutating func complete() {
        isComplete = true
        if !body.trailers.isEmpty { request.trailers = body.trailers }
    }

    // MARK: The end of a request

    /// Drops the kept bytes and ends the request.
    /// - Returns: whether the body was read to its end.
    mutating func finish() -> Bool {
        body.release(&input.buffer)
        request.content.finish()
        if !request.trailers.isEmpty { request.trailers = [] }
        return isComplete
    }

    /// Whether all known input was read, so that closing causes no reset.
    var isQuiet: Bool { isComplete && input.isEmpty && (!input.canRead || input.hasEnded) }

    /// Discards the buffered bytes, and a limited number of arriving bytes.
    /// - Parameter limit: approximate number of bytes.
    /// - Returns: the number of bytes read here; `nil` when the connection has failed.
    mutating func discard(from stream: any ByteStream, limit: Int) -> Int? {
        input.buffer.removeAll()
        var (count, pieces) = (0, 0)
        while input.canRead, pieces < 16, count <= limit {
            guard input.fill(from: stream, limit: 64 * 1024) else { return nil }
            count += input.count
            input.buffer.removeAll()
            pieces += 1
        }
        input.settle()
        return count
    }
}
