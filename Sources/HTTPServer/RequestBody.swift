import HTTPMessage
import Reactor

/// The body of one request, decoded from its framing.
///
/// While the body may have to be replayed (after a 401), the bytes already read stay in the input buffer, before the
/// unread ones. A rewind resets an offset and copies nothing.
struct RequestBody {
    private var framing = BodyFraming.none
    /// Number of content bytes left; `.max` if the length is unknown.
    private var remaining: UInt64 = 0
    private var decoder = ChunkedDecoder()
    /// Number of bytes, framing included, that were read but are still in the input buffer.
    private(set) var offset = 0
    /// Number of content bytes delivered since the start or the last rewind.
    private(set) var taken: UInt64 = 0
    /// Whether all content was delivered since the start or the last rewind.
    private(set) var isDone = true
    /// Limit in bytes of the content kept for a replay. Chunk framing may take as much again, plus `maxKeptFraming`.
    private var keepLimit = 0
    private static let maxKeptFraming = 4096
    /// Whether the first bytes were dropped, so that the body can't be replayed.
    private(set) var isSpent = false

    /// Trailers that may be forwarded; complete once the body is read to its end.
    var trailers: [(name: [UInt8], value: [UInt8])] { decoder.trailers }

    /// Whether the bytes belong to another protocol, and end with the connection.
    var isRaw: Bool { framing == .untilClose }

    /// - Parameter framing: `.untilClose` for another protocol, whose bytes are delivered unchanged.
    mutating func begin(_ framing: BodyFraming) {
        self.framing = framing
        keepLimit = 0
        isSpent = false
        restart()
    }

    mutating func keep(upTo limit: Int) { keepLimit = limit }

    /// Returns to the first byte.
    /// - Returns: `false`, without a change, if the first bytes were dropped.
    mutating func rewind() -> Bool {
        guard !isSpent else { return false }
        restart()
        return true
    }

    private mutating func restart() {
        offset = 0
        taken = 0
        remaining = .max
        switch framing {
        case .none: remaining = 0
        case .length(let length): remaining = length
        case .chunked: decoder.reset()
        case .untilClose: break
        }
        isDone = remaining == 0
    }

    /// Checks the chunks received so far, before the request is used. So a body that is malformed at its start reaches
    /// no upstream.
    func check(_ input: borrowing ByteBuffer) throws(MessageError) {
        guard framing == .chunked else { return }
        var decoder = ChunkedDecoder()
        var index = 0
        while case .data(_, let consumed) = try decoder.next(input.bytes, from: index) { index = consumed }
    }

    /// Whether `input` has enough bytes to fill `room`, or all that are left of the body.
    func isSatisfied(by input: borrowing ByteBuffer, room: Int) -> Bool {
        let available = input.count - offset
        guard case .length = framing else { return available >= room }
        return UInt64(available) >= min(UInt64(room), remaining)
    }

    /// Copies content into `room` and returns the number of bytes: 0 if `input` has none, or the body is done.
    /// - Throws: `MessageError` for malformed chunks.
    mutating func take(
        from input: inout ByteBuffer, into room: inout MutableSpan<UInt8>
    ) throws(MessageError) -> Int {
        var count = 0
        switch framing {
        case .none: break
        case .length, .untilClose:
            count = Int(min(UInt64(min(room.count, input.count - offset)), remaining))
            input.copy(offset..<(offset + count), to: &room, at: 0)
            offset += count
            // The length of another protocol's bytes is unknown.
            guard !isRaw else { break }
            remaining -= UInt64(count)
            isDone = remaining == 0
        case .chunked:
            if !isDone { count = try takeChunks(input, &room) }
        }
        taken &+= UInt64(count)
        if isSpent || taken > UInt64(keepLimit) || offset > keepLimit * 2 + Self.maxKeptFraming {
            if offset > 0 { isSpent = true }
            release(&input)
        }
        return count
    }

    private mutating func takeChunks(
        _ input: borrowing ByteBuffer, _ output: inout MutableSpan<UInt8>
    ) throws(MessageError) -> Int {
        let room = output.count
        var count = 0
        while !isDone, offset < input.count, count < room {
            // Limits the content of one step to the room.
            let end = min(input.count, offset + room - count)
            let step = try decoder.next(input.bytes.extracting(0..<end), from: offset)
            switch step {
            case .needMore(let consumed):
                let moved = consumed > offset
                offset = consumed
                guard moved, end < input.count else { return count }
            case .data(let range, let consumed):
                input.copy(range.range, to: &output, at: count)
                count += range.count
                offset = consumed
            case .end(let consumed):
                offset = consumed
                isDone = true
            }
        }
        return count
    }

    /// Drops the bytes already read. Then `input` begins with the first unread byte.
    mutating func release(_ input: inout ByteBuffer) {
        input.consume(offset)
        offset = 0
    }
}
