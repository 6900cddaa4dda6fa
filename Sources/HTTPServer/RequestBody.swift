import HTTPMessage
import Reactor

/// The body of one request, taken out of its framing.
///
/// While it may have to be read again (a 401 that a new token cures), what was taken stays where it came in, in front of
/// the client's next bytes: no copy is made, and going back is moving an offset.
struct RequestBody {
    private var framing = BodyFraming.none
    private var remaining: UInt64 = 0
    private var decoder = ChunkedDecoder()
    /// How many of the client's bytes, framing included, were taken but stand in the input still.
    private(set) var offset = 0
    /// How much was handed on in this pass, in bytes of content.
    private(set) var taken: UInt64 = 0
    /// All of it was handed on in this pass.
    private(set) var isDone = true
    /// As much of it as may be kept for another pass, in bytes of content.
    private var keepLimit = 0
    /// A part is gone: it can't be read again.
    private(set) var isSpent = false

    /// Those that may be passed on; complete once the body is done.
    var trailers: [(name: [UInt8], value: [UInt8])] { decoder.trailers }

    /// It is no HTTP any more, and ends with the connection.
    var isRaw: Bool { framing == .untilClose }

    /// - Parameter framing: `.untilClose` for what is no HTTP any more: all that comes, as it is.
    mutating func begin(_ framing: BodyFraming) {
        self.framing = framing
        keepLimit = 0
        isSpent = false
        restart()
    }

    /// Keeps what is taken, up to `limit` bytes.
    mutating func keep(upTo limit: Int) { keepLimit = limit }

    /// Begins again with the first byte.
    /// - Returns: false when a part is gone; nothing has changed then.
    mutating func rewind() -> Bool {
        guard !isSpent else { return false }
        restart()
        return true
    }

    private mutating func restart() {
        offset = 0
        taken = 0
        remaining = 0
        isDone = false
        switch framing {
        case .none: isDone = true
        case .length(let length):
            remaining = length
            isDone = length == 0
        case .chunked: decoder.reset()
        case .untilClose: break
        }
    }

    /// Looks over what is at hand of a chunked body, before anything of the request is used: what is malformed from the
    /// start goes nowhere, not even as a request that is cut.
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

    /// Moves content into `room` and answers how much; 0 when there is none in `input`, or no more to come.
    /// - Throws: `MessageError` for chunks that are malformed.
    mutating func take(
        from input: inout ByteBuffer, into room: inout MutableSpan<UInt8>
    ) throws(MessageError) -> Int {
        var count = 0
        switch framing {
        case .none: break
        case .length:
            count = Int(min(UInt64(min(room.count, input.count - offset)), remaining))
            input.copy(offset..<(offset + count), to: &room, at: 0)
            offset += count
            remaining -= UInt64(count)
            isDone = remaining == 0
        case .untilClose:
            count = min(room.count, input.count - offset)
            input.copy(offset..<(offset + count), to: &room, at: 0)
            offset += count
        case .chunked:
            if !isDone { count = try takeChunks(input, &room) }
        }
        taken &+= UInt64(count)
        if isSpent || taken > UInt64(keepLimit) {
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
            // Never more content in one step than there is room for.
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

    /// Lets go of what was kept; the next byte of `input` is the next one of the connection.
    mutating func release(_ input: inout ByteBuffer) {
        input.consume(offset)
        offset = 0
    }
}
