import WireText

/// The head of one HTTP/1.1 or 1.0 request, parsed strictly: text that two parsers could read differently is refused.
///
/// One pass over the bytes, which may come in any pieces. Keeps ranges instead of copies, and is reused with `reset()`,
/// so that a kept-alive connection allocates nothing. Not for concurrent use.
///
/// Choices where RFC 9112 leaves one:
/// - One empty line in front of the request line is skipped (2.2), but no second one, and never a bare LF.
/// - Lines end in CRLF only (2.2 would allow LF). Folded lines are refused (5.2). Field values have no control
///   characters but tab (RFC 9110 5.5); bytes above 0x7F pass.
/// - Versions other than 1.0 and 1.1 get 505; other spellings get 400.
/// - An HTTP/1.0 request may lack Host. An empty Host is refused, because `http` URIs have an authority (RFC 9110
///   4.2.1).
/// - Content on TRACE and CONNECT is refused (RFC 9110 9.3.6, 9.3.8).
/// - `Content_Length` and `Transfer_Encoding` are refused: CGI-like servers read them as the ones with a hyphen.
public struct RequestHead: Sendable {
    public enum Status: Sendable, Equatable {
        case incomplete
        /// Bytes of the head, blank line included.
        case complete(length: Int)
    }

    /// Case-sensitive, a token.
    public private(set) var method = ByteRange.empty
    public private(set) var methodKind = Method.other
    /// Never empty, no spaces, no controls. `RequestTarget` parses its form.
    public private(set) var target = ByteRange.empty
    public private(set) var version = HTTPVersion.http11
    public private(set) var fields: [Field] = []
    /// `.none`, `.length` or `.chunked`.
    public private(set) var framing = BodyFraming.none
    /// Whether the client may send another request on the connection. An HTTP/1.0 client must ask for it with an
    /// origin-form target, because a proxy must not keep connections with HTTP/1.0 clients (RFC 9112 9.3).
    public private(set) var keepAlive = false
    /// The value of the single Host field, valid as `Authority`; empty when an HTTP/1.0 request has none.
    public private(set) var host = ByteRange.empty
    /// The request has `Expect: 100-continue`, version 1.1 and content to wait for (RFC 9110 10.1.1).
    public private(set) var expectsContinue = false
    /// The request has an Upgrade field, Connection lists `upgrade`, and the version is 1.1 (RFC 9110 7.8).
    public private(set) var upgradeRequested = false

    private var facts = HeadFacts()
    private var state = State.start
    private var position = 0
    private var mark = 0
    private var nameEnd = 0
    private var valueStart = 0
    private var hasQuery = false
    private var failure: MessageError?
    private var hasHost = false
    private var hasContinue = false

    /// The element that the byte at `position` belongs to.
    private enum State: UInt8, Sendable {
        case start, startLF, method, target, version, requestLineLF, fieldStart, name, space, value, valueLF, endLF
        case complete
    }

    public init() {}

    /// Prepares for the next request; keeps the memory of `fields`.
    public mutating func reset() {
        method = .empty
        methodKind = .other
        target = .empty
        version = .http11
        fields.removeAll(keepingCapacity: true)
        framing = .none
        keepAlive = false
        host = .empty
        expectsContinue = false
        upgradeRequested = false
        facts.reset()
        state = .start
        position = 0
        mark = 0
        hasQuery = false
        failure = nil
        hasHost = false
        hasContinue = false
    }

    /// The index in `fields` of the first field of this kind.
    public func index(of known: KnownField) -> Int? {
        for index in fields.indices where fields[index].known == known { return index }
        return nil
    }

    /// Whether the complete head's `Connection` names a field. A trailer of that name is not forwarded either.
    /// - Parameter bytes: the parsed buffer.
    public func connectionNames(_ name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        facts.connectionNames(name, in: bytes)
    }

    /// Continues from the end of the last call.
    /// - Parameter bytes: the message from its start; only grows between calls.
    /// - Throws: 400, 414, 417, 431, 501 or 505 at the first wrong byte. Nothing more may be read from the connection
    ///   then. Every later call throws the same until `reset()`.
    public mutating func parse(_ bytes: Span<UInt8>, limits: HeadLimits) throws(MessageError) -> Status {
        if let failure { throw failure }
        do {
            return try advance(bytes, limits)
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func advance(_ all: Span<UInt8>, _ limits: HeadLimits) throws(MessageError) -> Status {
        let bytes = all.extracting(first: limits.maxBytes)
        var index = position
        while index < bytes.count {
            switch state {
            case .start:
                mark = index
                if bytes[index] == ASCII.cr, index == 0 {
                    index = 1
                    state = .startLF
                } else {
                    state = .method
                }

            case .startLF:
                guard bytes[index] == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
                index += 1
                mark = index
                state = .method

            case .method:
                index = ASCII.endOfToken(bytes, index)
                guard index - mark <= HeadLimits.maxMethodBytes else {
                    throw MessageError(status: 501, detail: "The method is longer than 32 bytes.")
                }
                guard index < bytes.count else { break }
                guard bytes[index] == ASCII.space, index > mark else { throw Self.methodError(bytes[index]) }
                method = ByteRange(mark, index)
                methodKind = Method(bytes, mark, index)
                if methodKind == .other, method.equals(Self.preface, in: bytes) {
                    throw MessageError("PRI begins the preface of HTTP/2, which is not spoken here.")
                }
                index += 1
                mark = index
                state = .target

            case .target:
                index = ASCII.endOfTarget(bytes, index)
                guard index < bytes.count else { break }
                guard bytes[index] == ASCII.space, index > mark else {
                    try checkUnusualTargetByte(bytes, index)
                    index += 1
                    break
                }
                target = ByteRange(mark, index)
                index += 1
                mark = index
                state = .version

            case .version:
                let available = min(bytes.count, mark + 9)
                try readVersion(bytes, mark, available)
                index = available
                if available == mark + 9 { state = .requestLineLF }

            case .requestLineLF:
                guard bytes[index] == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
                index += 1
                state = .fieldStart

            case .fieldStart:
                if bytes[index] == ASCII.cr {
                    index += 1
                    state = .endLF
                } else {
                    guard fields.count < limits.maxFields else {
                        throw MessageError(status: 431, detail: "The head has too many fields.")
                    }
                    mark = index
                    state = .name
                }

            case .name:
                index = ASCII.endOfToken(bytes, index)
                guard index < bytes.count else { break }
                guard bytes[index] == ASCII.colon, index > mark else {
                    throw FieldLine.nameError(bytes[index], isFirst: index == mark)
                }
                nameEnd = index
                index += 1
                state = .space

            case .space:
                while index < bytes.count, ASCII.isBlank(bytes[index]) { index += 1 }
                guard index < bytes.count else { break }
                valueStart = index
                state = .value

            case .value:
                index = ASCII.endOfFieldValue(bytes, index)
                guard index < bytes.count else { break }
                guard bytes[index] == ASCII.cr else { throw FieldLine.valueError(bytes[index]) }
                index += 1
                state = .valueLF

            case .valueLF:
                guard bytes[index] == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
                try takeField(bytes, lineEnd: index - 1)
                index += 1
                state = .fieldStart

            case .endLF:
                guard bytes[index] == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
                try finish(bytes)
                index += 1
                position = index
                state = .complete
                return .complete(length: index)

            case .complete:
                return .complete(length: position)
            }
        }
        if state == .complete { return .complete(length: position) }
        position = index
        guard all.count < limits.maxBytes else {
            // RFC 9112 3: 414 for a target that is too long; RFC 6585 5: 431 for fields that are.
            throw state.rawValue <= State.target.rawValue
                ? MessageError(status: 414, detail: "The request target is too long.")
                : MessageError(status: 431, detail: "The head is too large.")
        }
        return .incomplete
    }

    /// The target as far as it was read, and whether it is complete.
    func targetSoFar(_ bytes: Span<UInt8>) -> (range: ByteRange, isWhole: Bool) {
        switch state {
        case .start, .startLF, .method: (.empty, false)
        case .target: (ByteRange(mark, ASCII.endOfTarget(bytes, mark)), false)
        case .version, .requestLineLF: (target, false)
        default: (target, true)
        }
    }

    // MARK: Request line

    private static func methodError(_ byte: UInt8) -> MessageError {
        switch byte {
        case ASCII.space, ASCII.tab: MessageError("The request line begins with whitespace, or has it in the method.")
        case ASCII.lf: MessageError("A line ends in a bare LF; lines end in CRLF.")
        case ASCII.cr: MessageError("The request line is missing or has no target.")
        case 0x16: MessageError("This is TLS; the proxy expects plain HTTP here.")
        default: MessageError("The method has a character that methods can't have.")
        }
    }

    /// Accepts a backslash in a query. Throws for everything else that neither continues nor ends a target.
    private mutating func checkUnusualTargetByte(_ bytes: Span<UInt8>, _ index: Int) throws(MessageError) {
        switch bytes[index] {
        case ASCII.backslash:
            if !hasQuery { hasQuery = (mark..<index).contains { bytes[$0] == ASCII.question } }
            guard hasQuery else { throw MessageError("There is a backslash in the target; write %5C.") }
        case ASCII.hash: throw MessageError("The target has a fragment; it must not be sent.")
        case ASCII.space: throw MessageError("There is more than one space in front of the target.")
        case ASCII.cr, ASCII.lf: throw MessageError("The request line has no version.")
        case 0x80...: throw MessageError("The target has a byte beyond ASCII; percent-encode it.")
        default: throw MessageError("The target has a control character.")
        }
    }

    /// Reads `HTTP/1.1` or `HTTP/1.0` and the CR behind it, up to `end`. The first wrong byte decides the error.
    private mutating func readVersion(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) throws(MessageError) {
        var index = start
        while index < end {
            let byte = bytes[index]
            let fits =
                switch index - start {
                case 0: byte == 0x48
                case 1, 2: byte == 0x54
                case 3: byte == 0x50
                case 4: byte == ASCII.slash
                case 6: byte == ASCII.dot
                case 8: byte == ASCII.cr
                default: ASCII.isDigit(byte)
                }
            guard fits else {
                throw byte == ASCII.lf
                    ? MessageError("A line ends in a bare LF; lines end in CRLF.")
                    : MessageError("The request line is not METHOD TARGET HTTP/1.1; a space is written %20.")
            }
            index += 1
        }
        guard end - start == 9 else { return }
        switch (bytes[start + 5], bytes[start + 7]) {
        case (0x31, 0x31): version = .http11
        case (0x31, 0x30): version = .http10
        default: throw MessageError(status: 505, detail: "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        }
    }

    // MARK: Fields

    private mutating func takeField(_ bytes: Span<UInt8>, lineEnd: Int) throws(MessageError) {
        var valueEnd = lineEnd
        while valueEnd > valueStart, ASCII.isBlank(bytes[valueEnd - 1]) { valueEnd -= 1 }
        let field = Field(
            name: ByteRange(mark, nameEnd), value: ByteRange(valueStart, valueEnd),
            known: KnownField.recognized(bytes, mark, nameEnd), in: bytes)
        switch field.known {
        case .host: try takeHost(field.value, bytes)
        case .expect: try takeExpect(field.value, bytes)
        default: try facts.note(field, in: bytes, lineEnd: lineEnd)
        }
        fields.append(field)
    }

    /// RFC 9112 3.2.
    private mutating func takeHost(_ value: ByteRange, _ bytes: Span<UInt8>) throws(MessageError) {
        guard !hasHost else { throw MessageError("There is more than one Host field.") }
        hasHost = true
        _ = try AuthorityParts(bytes, value)
        host = value
    }

    /// RFC 9110 10.1.1: ignored for an HTTP/1.0 client, which can't expect 100-continue.
    private mutating func takeExpect(_ value: ByteRange, _ bytes: Span<UInt8>) throws(MessageError) {
        guard !hasContinue, value.equalsIgnoringCase(Self.hundredContinue, in: bytes) else {
            throw MessageError(status: 417, detail: "The only expectation that can be met is '100-continue'.")
        }
        hasContinue = true
    }

    /// Method of HTTP/2's connection preface, reserved with any target and version (RFC 9113 11.6).
    private static let preface = [UInt8]("PRI".utf8)
    private static let hundredContinue = [UInt8]("100-continue".utf8)

    private mutating func finish(_ bytes: Span<UInt8>) throws(MessageError) {
        guard hasHost || version == .http10 else { throw MessageError("There is no Host field.") }
        if facts.isChunked {
            guard version == .http11 else { throw MessageError("An HTTP/1.0 request has Transfer-Encoding.") }
            framing = .chunked
        } else if let length = facts.contentLength {
            framing = .length(length)
        }
        let hasContent = framing != .none && framing != .length(0)
        switch methodKind {
        case .trace where hasContent: throw MessageError("A TRACE request can't have content.")
        case .connect where hasContent: throw MessageError("A CONNECT request can't have content.")
        default: break
        }
        keepAlive = facts.persists(version) && (version == .http11 || bytes[Int(target.start)] == ASCII.slash)
        expectsContinue = hasContinue && hasContent && version == .http11
        upgradeRequested = facts.saysUpgrade && facts.hasUpgrade && version == .http11
        facts.applyConnection(to: &fields, in: bytes)
    }
}
