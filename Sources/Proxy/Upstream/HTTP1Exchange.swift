import HTTPMessage
import WireText

/// One request and its answer on an HTTP/1.1 connection, without I/O: takes the answer's bytes, returns their meaning,
/// and tracks the upload. Not copyable, so lending the head costs nothing.
struct HTTP1Exchange: ~Copyable {
    enum Upload: Equatable {
        case none
        case length(UInt64)
        case chunked
    }

    /// Meaning of the answer's next bytes. Reading continues at `consumed`.
    enum Event: Equatable {
        /// The bytes after `consumed` are incomplete. The next call needs these bytes and more.
        case needMore(consumed: Int)
        /// `head` holds a complete head: of an interim answer, of 101, or of the final answer.
        case head(consumed: Int)
        case content(ByteRange, consumed: Int)
        /// The answer is complete. Bytes after `consumed` are unexpected.
        case end(consumed: Int)
    }

    /// Meaning of the connection's end for the answer.
    enum Closing: Equatable {
        case whole
        case unanswered
        case cut
    }

    /// Progress of the answer.
    private enum Reading {
        case heads(Heads)
        /// - Parameter left: number of bytes still to come.
        case content(left: UInt64)
        case chunked
        /// A body until the connection's end.
        case toEnd
        /// Another protocol, until the connection's end.
        case switched
        case done
    }

    /// State of reading the interim heads and the final head.
    private struct Heads {
        var interim = 0
        var bytes = 0
        /// Number of bytes of the incomplete line in which no line end was found.
        var scanned = 0
        var sawBytes = false
        /// Whether `head` holds an interim head that was returned already. The next head replaces it.
        var isHeadOver = false
    }

    /// Progress of the request's body.
    private enum Sending {
        /// - Parameter left: number of bytes still to be sent of a body of known length.
        case content(left: UInt64)
        case chunks
        case finished
        /// The upstream does not want the rest.
        case stopped
    }

    static let maxInterim = 32
    /// Limit of one line of a head, with CRLF.
    static let maxLine = 100 << 10
    /// Limit of all heads of one answer together.
    static let maxHeadBytes = 1 << 20

    private(set) var head = ResponseHead()

    @inline(__always) borrowing func withHead<Result>(_ read: (borrowing ResponseHead) -> Result) -> Result {
        read(head)
    }

    /// Frees the memory of an unusually large head, between two exchanges.
    mutating func shrink() { head.shrink() }

    private var decoder = ChunkedDecoder(ofAnswer: true)
    private var reading = Reading.done
    private var sending = Sending.finished
    private var offersUpgrade = false
    private var requestWasHead = false
    /// Whether an interim head breaks the grammar.
    private var hasIrregularInterim = false
    /// Whether the body waits for a 100.
    private var expectsContinue = false

    /// Prepares for the next request. Keeps memory.
    mutating func begin(
        requestWasHead: Bool, upload: Upload, expectsContinue: Bool, offersUpgrade: Bool = false
    ) {
        (self.requestWasHead, self.expectsContinue) = (requestWasHead, expectsContinue)
        self.offersUpgrade = offersUpgrade
        head.reset(requestWasHead: requestWasHead)
        (reading, hasIrregularInterim) = (.heads(Heads()), false)
        sending =
            switch upload {
            case .none, .length(0): .finished
            case .length(let length): .content(left: length)
            case .chunked: .chunks
            }
    }

    // MARK: The answer

    /// Returns the meaning of the next bytes.
    /// - Throws: error with status 502. The connection is then unusable.
    mutating func next(_ bytes: Span<UInt8>, from: Int) throws(MessageError) -> Event {
        switch reading {
        case .heads(var heads):
            if from < bytes.count, !heads.sawBytes {
                heads.sawBytes = true
                reading = .heads(heads)
            }
            return try readHead(bytes, from, &heads)
        case .content(let left):
            guard left > 0 else {
                reading = .done
                return .end(consumed: from)
            }
            guard from < bytes.count else { return .needMore(consumed: from) }
            let count = Int(min(left, UInt64(bytes.count - from)))
            reading = .content(left: left - UInt64(count))
            return .content(ByteRange(from, from + count), consumed: from + count)
        case .chunked:
            do throws(MessageError) {
                switch try decoder.next(bytes, from: from) {
                case .needMore(let consumed): return .needMore(consumed: consumed)
                case .data(let range, let consumed): return .content(range, consumed: consumed)
                case .end(let consumed):
                    reading = .done
                    return .end(consumed: consumed)
                }
            } catch {
                throw MessageError(status: 502, detail: error.detail)
            }
        case .toEnd, .switched:
            guard from < bytes.count else { return .needMore(consumed: from) }
            return .content(ByteRange(from, bytes.count), consumed: bytes.count)
        case .done: return .end(consumed: from)
        }
    }

    private mutating func readHead(
        _ bytes: Span<UInt8>, _ from: Int, _ heads: inout Heads
    ) throws(MessageError) -> Event {
        if heads.isHeadOver {
            head.reset(requestWasHead: requestWasHead)
            heads.isHeadOver = false
        }
        var start = from
        if head.status == 0, heads.bytes == 0, start < bytes.count, bytes[start] == 0 {
            guard try Self.isNoFrame(bytes.extracting(start...)) else { return .needMore(consumed: start) }
        }
        while true {
            let index = bytes.position(of: UInt8(ascii: "\n"), from: start + heads.scanned)
            guard index < bytes.count else {
                heads.scanned = index - start
                guard heads.scanned < Self.maxLine else { throw Self.lineTooLong }
                if head.status == 0 { try Self.checkBeginning(bytes.extracting(start..<index)) }
                reading = .heads(heads)
                return .needMore(consumed: start)
            }
            heads.scanned = 0
            guard index + 1 - start <= Self.maxLine else { throw Self.lineTooLong }
            let line = bytes.extracting(start..<(index + 1))
            start = index + 1
            heads.bytes += line.count
            guard heads.bytes <= Self.maxHeadBytes else {
                throw MessageError(status: 502, detail: "The heads are larger than \(Self.maxHeadBytes >> 10) KiB.")
            }
            guard try head.append(line: line, allowHTTP2: false) else { continue }
            try settle(&heads)
            return .head(consumed: start)
        }
    }

    private mutating func settle(_ heads: inout Heads) throws(MessageError) {
        if head.isInterim {
            if head.status == 100 { expectsContinue = false }
            if head.isIrregular { hasIrregularInterim = true }
            heads.interim += 1
            guard heads.interim <= Self.maxInterim else { throw Self.manyInterim }
            heads.isHeadOver = true
            reading = .heads(heads)
            return
        }
        if head.status == 101, offersUpgrade {
            guard isUploadFinished else { throw Self.earlySwitch }
            return reading = .switched
        }
        // An upstream that sends an error does not want the rest of the body. One that sends a final answer instead of
        // the expected 100 does not want the body at all.
        if head.status >= 400 || expectsContinue { stopUpload() }
        switch head.framing {
        case .none: reading = .done
        case .length(let length): reading = .content(left: length)
        case .chunked:
            decoder.reset()
            reading = .chunked
        case .untilClose: reading = .toEnd
        }
    }

    /// - Parameter isClean: whether the connection ended in order (in TLS: by close_notify, RFC 9112, section 9.8).
    func closed(isClean: Bool) -> Closing {
        switch reading {
        case .heads(let heads): heads.sawBytes ? .cut : .unanswered
        case .content(let left): left == 0 ? .whole : .cut
        case .chunked: .cut
        case .toEnd: isClean ? .whole : .cut
        case .switched, .done: .whole
        }
    }

    /// Trailers that may be passed on; empty unless the answer is chunked and complete.
    var trailers: [(name: [UInt8], value: [UInt8])] {
        guard isChunked, decoder.isEnded, !decoder.trailers.isEmpty else { return [] }
        return decoder.trailers.filter { !head.connectionNames($0.name.span) }
    }

    // MARK: The request's body

    var wantsUpload: Bool { if isUploadFinished || isUploadStopped { isSwitched } else { true } }

    /// Returns the number of bytes that may be sent at once, at most `limit`.
    func room(_ limit: Int) -> Int {
        guard case .content(let left) = sending else { return limit }
        return Int(min(UInt64(limit), left))
    }

    /// Notes that a piece of the body was sent.
    mutating func sent(_ count: Int) {
        expectsContinue = false
        guard case .content(let left) = sending else { return }
        sending = left <= UInt64(count) ? .finished : .content(left: left - UInt64(count))
    }

    /// Handles the end of the program's body.
    /// - Returns: `false` if the body is shorter than announced.
    mutating func endUpload() -> Bool {
        switch sending {
        case .content: return false
        case .chunks:
            sending = .finished
            return true
        case .finished, .stopped: return true
        }
    }

    /// Whether the next `count` bytes of the answer are certainly content.
    func isContent(_ count: Int) -> Bool {
        switch reading {
        case .content(let left): left >= UInt64(count)
        case .toEnd, .switched: true
        case .heads, .chunked, .done: false
        }
    }

    // MARK: State

    var isUploadFinished: Bool { if case .finished = sending { true } else { false } }
    var isUploadStopped: Bool { if case .stopped = sending { true } else { false } }
    mutating func stopUpload() {
        switch sending {
        case .content, .chunks: sending = .stopped
        case .finished, .stopped: break
        }
    }

    var isSwitched: Bool { if case .switched = reading { true } else { false } }
    /// Whether the final head has come.
    var isAnswered: Bool { if case .heads = reading { false } else { true } }
    var isWhole: Bool { if case .done = reading { true } else { false } }
    var isReadToEnd: Bool { if case .toEnd = reading { true } else { false } }

    /// Whether request and answer allow another request on the connection. Not after an answer that broke the grammar.
    var keepsConnection: Bool {
        isWhole && isUploadFinished && head.keepAlive && !hasIrregularInterim && !(isChunked && decoder.isIrregular)
    }
    private var isChunked: Bool { head.framing == .chunked }

    private static let earlySwitch = MessageError(
        status: 502, detail: "The upstream switched protocols before it had the whole request.")
    private static let lineTooLong = MessageError(
        status: 502, detail: "A line of the head is longer than \(maxLine >> 10) KiB.")
    static let manyInterim = MessageError(status: 502, detail: "There are more than \(maxInterim) interim answers.")
}
