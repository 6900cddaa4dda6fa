import WireText

/// The head of one HTTP/1.1 or 1.0 request, parsed strictly: text that two parsers could read differently is refused.
///
/// One pass over the bytes, which may come in any pieces. Keeps ranges instead of copies, and is reused with `reset()`,
/// so that a kept-alive connection allocates nothing. Not for concurrent use.
///
/// Choices where RFC 9112 allows several:
/// - One empty line before the request line is skipped (2.2), but no second one, and never a bare LF.
/// - Lines end in CRLF only (2.2 would allow LF). Folded lines are refused (5.2). Field values have no control
///   characters but tab (RFC 9110 5.5); bytes above 0x7F pass.
/// - Versions other than 1.0 and 1.1 get 505; other spellings get 400.
/// - An HTTP/1.0 request may lack Host. An empty Host is refused, because `http` URIs have an authority (RFC 9110
///   4.2.1).
/// - Content on TRACE and CONNECT is refused (RFC 9110 9.3.6, 9.3.8).
/// - `Content_Length`, `Transfer.Encoding` and the like are refused: CGI-like servers read any mark as a hyphen.
public struct RequestHead: Sendable {
    public enum Status: Sendable, Equatable {
        case incomplete
        /// - Parameter length: bytes of the head, blank line included.
        case complete(length: Int)
    }

    /// Method, a token. Its case matters.
    public private(set) var method = ByteRange.empty
    public private(set) var methodKind = Method.other
    /// Target, never empty, without spaces and controls. `RequestTarget` parses its form.
    public private(set) var target = ByteRange.empty
    public package(set) var version = HTTPVersion.http11
    public private(set) var fields: [Field] = []
    /// `.none`, `.length` or `.chunked`.
    public private(set) var framing = BodyFraming.none
    /// Whether the client may send another request on the connection. An HTTP/1.0 client must ask for this, with a
    /// path as target. A URL as target is for a proxy, which must not keep HTTP/1.0 connections (RFC 9112 9.3).
    public private(set) var keepAlive = false
    /// The value of the single Host field, valid as `Authority`; empty when an HTTP/1.0 request has none.
    public private(set) var host = ByteRange.empty
    /// Whether the request has `Expect: 100-continue`, version 1.1 and content to wait for (RFC 9110 10.1.1).
    public private(set) var expectsContinue = false
    /// Whether the request has an Upgrade field, Connection lists `upgrade`, and the version is 1.1 (RFC 9110 7.8).
    public private(set) var upgradeRequested = false

    private var facts = HeadFacts()
    private var cursor = Cursor()

    public init() {}

    /// Prepares for the next request; keeps the memory of `fields`.
    public mutating func reset() {
        var next = RequestHead()
        swap(&next.fields, &fields)
        next.fields.removeAll(keepingCapacity: true)
        self = next
    }

    /// The index in `fields` of the first field of this kind.
    public func index(of known: KnownField) -> Int? { fields.firstIndex { $0.known == known } }

    /// Whether the complete head's `Connection` names a field. A trailer of that name is not forwarded either.
    /// - Parameter bytes: the parsed buffer.
    public func connectionNames(_ name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        facts.connectionNames(name, in: bytes)
    }

    /// Continues to parse where the last call ended.
    /// - Parameter bytes: the message from its start; only grows between calls.
    /// - Throws: 400, 414, 417, 431, 501 or 505 at the first wrong byte. Nothing more may be read from the connection
    ///   then. Every later call throws the same until `reset()`.
    public mutating func parse(_ bytes: Span<UInt8>, limits: HeadLimits) throws(MessageError) -> Status {
        if let failure = cursor.failure { throw failure }
        do {
            return try advance(bytes, limits)
        } catch {
            cursor.failure = error
            throw error
        }
    }

    private mutating func advance(_ all: Span<UInt8>, _ limits: HeadLimits) throws(MessageError) -> Status {
        let bytes = all.extracting(first: limits.maxBytes)
        var index = cursor.position
        if cursor.state.isInRequestLine { index = try readRequestLine(bytes, from: index) }
        if !cursor.state.isInRequestLine { index = try readFields(bytes, from: index, limits) }
        if cursor.state == .complete { return .complete(length: cursor.position) }
        cursor.position = index
        guard all.count < limits.maxBytes else {
            // RFC 9112 3: 414 for a target that is too long; RFC 6585 5: 431 for fields that are.
            throw cursor.state.rawValue <= State.target.rawValue
                ? MessageError(status: 414, detail: "The request target is too long.")
                : MessageError(status: 431, detail: "The head is too large.")
        }
        return .incomplete
    }

    // MARK: Request line

    /// - Returns: the position of the first byte that was not read.
    private mutating func readRequestLine(_ bytes: Span<UInt8>, from start: Int) throws(MessageError) -> Int {
        var index = start
        while index < bytes.count {
            switch cursor.state {
            case .start:
                cursor.mark = index
                cursor.state = bytes[index] == ASCII.cr && index == 0 ? .startLF : .method
                if cursor.state == .startLF { index = 1 }

            case .startLF:
                guard bytes[index] == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
                index += 1
                cursor.mark = index
                cursor.state = .method

            case .method:
                index = ASCII.endOfToken(bytes, index)
                guard index - cursor.mark <= HeadLimits.maxMethodBytes else {
                    throw MessageError(status: 501, detail: "The method is longer than 32 bytes.")
                }
                guard index < bytes.count else { break }
                guard bytes[index] == ASCII.space, index > cursor.mark else {
                    throw RequestLine.methodError(bytes[index])
                }
                try takeMethod(ByteRange(cursor.mark, index), bytes)
                index += 1
                cursor.mark = index
                cursor.state = .target

            case .target:
                index = ASCII.endOfTarget(bytes, index)
                guard index < bytes.count else { break }
                guard bytes[index] == ASCII.space, index > cursor.mark else {
                    try takeUnusualTargetByte(bytes, index)
                    index += 1
                    break
                }
                target = ByteRange(cursor.mark, index)
                index += 1
                cursor.mark = index
                cursor.state = .version

            case .version:
                index = min(bytes.count, cursor.mark + RequestLine.versionLength)
                if let version = try RequestLine.version(bytes, cursor.mark, index) {
                    self.version = version
                    cursor.state = .requestLineLF
                }

            case .requestLineLF:
                guard bytes[index] == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
                index += 1
                cursor.state = .fieldStart

            default: return index
            }
        }
        return index
    }

    private mutating func takeUnusualTargetByte(_ bytes: Span<UInt8>, _ index: Int) throws(MessageError) {
        if !cursor.hasQuery { cursor.hasQuery = (cursor.mark..<index).contains { bytes[$0] == ASCII.question } }
        try RequestLine.checkUnusualTargetByte(bytes[index], isInQuery: cursor.hasQuery)
    }

    private mutating func takeMethod(_ range: ByteRange, _ bytes: Span<UInt8>) throws(MessageError) {
        method = range
        methodKind = Method(bytes, Int(range.start), Int(range.end))
        if methodKind == .other, bytes.extracting(range.range).elementsEqual(RequestLine.preface) {
            throw MessageError("PRI begins the preface of HTTP/2, which is not accepted here.")
        }
    }

    /// - Returns: the position of the first byte that was not read.
    private mutating func readFields(
        _ bytes: Span<UInt8>, from start: Int, _ limits: HeadLimits
    ) throws(MessageError) -> Int {
        var index = start
        while index < bytes.count {
            switch cursor.state {
            case .fieldStart:
                guard bytes[index] != ASCII.cr else {
                    index += 1
                    cursor.state = .endLF
                    break
                }
                guard fields.count < limits.maxFields else {
                    throw MessageError(status: 431, detail: "The head has too many fields.")
                }
                cursor.mark = index
                cursor.state = .name

            case .name:
                index = ASCII.endOfToken(bytes, index)
                guard index < bytes.count else { break }
                guard bytes[index] == ASCII.colon, index > cursor.mark else {
                    throw FieldLine.nameError(bytes[index], isFirst: index == cursor.mark)
                }
                cursor.nameEnd = index
                index += 1
                cursor.state = .space

            case .space:
                while index < bytes.count, ASCII.isBlank(bytes[index]) { index += 1 }
                guard index < bytes.count else { break }
                cursor.valueStart = index
                cursor.state = .value

            case .value:
                index = ASCII.endOfFieldValue(bytes, index)
                guard index < bytes.count else { break }
                guard bytes[index] == ASCII.cr else { throw FieldLine.valueError(bytes[index]) }
                index += 1
                cursor.state = .valueLF

            case .valueLF:
                guard bytes[index] == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
                try takeField(bytes, lineEnd: index - 1)
                index += 1
                cursor.state = .fieldStart

            case .endLF:
                guard bytes[index] == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
                try finish(bytes)
                cursor.position = index + 1
                cursor.state = .complete
                return cursor.position

            default: return index
            }
        }
        return index
    }

    /// The target as far as it was read, and whether it is complete.
    func targetSoFar(_ bytes: Span<UInt8>) -> (range: ByteRange, isWhole: Bool) {
        switch cursor.state {
        case .start, .startLF, .method: (.empty, false)
        case .target: (ByteRange(cursor.mark, ASCII.endOfTarget(bytes, cursor.mark)), false)
        case .version, .requestLineLF: (target, false)
        default: (target, true)
        }
    }

    // MARK: Fields

    private mutating func takeField(_ bytes: Span<UInt8>, lineEnd: Int) throws(MessageError) {
        var valueEnd = lineEnd
        while valueEnd > cursor.valueStart, ASCII.isBlank(bytes[valueEnd - 1]) { valueEnd -= 1 }
        let field = Field(
            name: ByteRange(cursor.mark, cursor.nameEnd), value: ByteRange(cursor.valueStart, valueEnd),
            known: KnownField.recognized(bytes, cursor.mark, cursor.nameEnd), in: bytes)
        switch field.known {
        case .host: try takeHost(field.value, bytes)
        case .expect: try takeExpect(field.value, bytes)
        default: try facts.note(field, in: bytes, lineEnd: lineEnd)
        }
        fields.append(field)
    }

    /// RFC 9112 3.2.
    private mutating func takeHost(_ value: ByteRange, _ bytes: Span<UInt8>) throws(MessageError) {
        guard !cursor.hasHost else { throw MessageError("There is more than one Host field.") }
        cursor.hasHost = true
        _ = try AuthorityParts(bytes, value)
        host = value
    }

    /// Accepts only a single 100-continue, which has no effect for an HTTP/1.0 client (RFC 9110 10.1.1).
    private mutating func takeExpect(_ value: ByteRange, _ bytes: Span<UInt8>) throws(MessageError) {
        guard !cursor.hasContinue, value.equalsIgnoringCase(Self.hundredContinue, in: bytes) else {
            throw MessageError(status: 417, detail: "The only expectation that can be met is '100-continue'.")
        }
        cursor.hasContinue = true
    }

    private static let hundredContinue = [UInt8]("100-continue".utf8)

    private mutating func finish(_ bytes: Span<UInt8>) throws(MessageError) {
        guard cursor.hasHost || version == .http10 else { throw MessageError("There is no Host field.") }
        if facts.isChunked {
            guard version == .http11 else { throw MessageError("An HTTP/1.0 request has Transfer-Encoding.") }
            framing = .chunked
        } else if let length = facts.contentLength {
            framing = .length(length)
        }
        let hasContent = framing.hasContent
        switch methodKind {
        case .trace where hasContent: throw MessageError("A TRACE request can't have content.")
        case .connect where hasContent: throw MessageError("A CONNECT request can't have content.")
        default: break
        }
        keepAlive = facts.persists(version) && (version == .http11 || bytes[Int(target.start)] == ASCII.slash)
        expectsContinue = cursor.hasContinue && hasContent && version == .http11
        upgradeRequested = facts.saysUpgrade && facts.hasUpgrade && version == .http11
        facts.applyConnection(to: &fields, in: bytes)
    }
}
