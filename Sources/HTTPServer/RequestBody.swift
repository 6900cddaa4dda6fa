import HTTPMessage
import Reactor

/// The body of one request, decoded from its framing.
///
/// While the body may have to be read again (after a 401 that a new token cures), consumed bytes stay in the input
/// buffer, in front of the client's next bytes. Going back moves an offset and copies nothing.
struct RequestBody {
    private var framing = BodyFraming.none
    /// Bytes of content left; `.max` where the framing does not say.
    private var remaining: UInt64 = 0
    private var decoder = ChunkedDecoder()
    /// Number of the client's bytes, framing included, that were consumed but are still in the input.
    private(set) var offset = 0
    /// Bytes of content delivered in this pass.
    private(set) var taken: UInt64 = 0
    /// All content was delivered in this pass.
    private(set) var isDone = true
    /// Limit of content kept for another pass, in bytes. Its framing may take as much and `maxKeptFraming` more.
    private var keepLimit = 0
    private static let maxKeptFraming = 4096
    /// The first bytes are gone: the body can't be read again.
    private(set) var isSpent = false

    /// Trailers that may be passed on; complete once the body is done.
    var trailers: [(name: [UInt8], value: [UInt8])] { decoder.trailers }

    /// The bytes are no longer HTTP, and end with the connection.
    var isRaw: Bool { framing == .untilClose }

    /// - Parameter framing: `.untilClose` for bytes that are no longer HTTP, delivered unchanged.
    mutating func begin(_ framing: BodyFraming) {
        self.framing = framing
        keepLimit = 0
        isSpent = false
        restart()
    }

    mutating func keep(upTo limit: Int) { keepLimit = limit }

    /// Starts again at the first byte.
    /// - Returns: `false`, and changes nothing, when the first bytes are gone.
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

    /// Checks the available bytes of a chunked body before the request is used. A body that is malformed from its first
    /// bytes reaches no upstream.
    func check(_ input: borrowing ByteBuffer) throws(MessageError) {
        guard framing == .chunked else { return }
        var decoder = ChunkedDecoder()
        var index = 0
        while case .data(_, let consumed) = try decoder.next(input.bytes, from: index) { index = consumed }
    }

    /// Whether `input` holds as much as can be used at once.
    func isSatisfied(by input: borrowing ByteBuffer, room: Int) -> Bool {
        let available = input.count - offset
        guard case .length = framing else { return available >= room }
        return UInt64(available) >= min(UInt64(room), remaining)
    }

    /// Moves content into `room` and returns the number of bytes; 0 when `input` has none, or the body is done.
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
            // Bytes that are no longer HTTP have no end.
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

    /// Drops the kept bytes. The next byte of `input` is then the connection's next byte.
    mutating func release(_ input: inout ByteBuffer) {
        input.consume(offset)
        offset = 0
    }
}
