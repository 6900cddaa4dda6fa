import WireText

/// Facts about a message and its connection, from the fields of a request's or a response's head. Fields are read one
/// by one. `Connection` is applied when the head is complete.
struct HeadFacts: Sendable {
    /// Whether the fields are an answer's. Recipients of answers read some faults alike.
    private let isAnswer: Bool
    /// Whether Connection has a malformed element.
    private(set) var isIrregular = false
    private(set) var contentLength: UInt64?
    private(set) var isChunked = false
    private(set) var saysClose = false
    private(set) var saysKeepAlive = false
    private(set) var saysUpgrade = false
    private(set) var hasUpgrade = false
    /// Fields that `Connection` names: ranges of unknown names, and one bit for each known one.
    private var named: [ByteRange] = []
    private var namedKnown: UInt64 = 0
    private var optionCount = 0

    init(isAnswer: Bool = false) { self.isAnswer = isAnswer }

    /// Reads one field.
    /// - Parameters:
    ///   - lineEnd: the offset of the CR that ends the field's line.
    ///   - offset: position of `bytes` in the buffer that `applyConnection` will receive.
    mutating func note(_ field: Field, in bytes: Span<UInt8>, lineEnd: Int, offset: Int = 0) throws(MessageError) {
        switch field.known {
        case .contentLength: try noteContentLength(field, in: bytes, lineEnd: lineEnd)
        case .transferEncoding: try noteTransferEncoding(field, in: bytes, lineEnd: lineEnd)
        case .connection: try noteConnection(field.value, in: bytes, offset)
        case .upgrade: hasUpgrade = true
        case .other: try refuseLookalike(field.name, in: bytes)
        default: break
        }
    }

    // MARK: Framing

    /// Refuses a repeated field, and both framing fields together (RFC 9112 6.3).
    private mutating func noteContentLength(_ field: Field, in bytes: Span<UInt8>, lineEnd: Int) throws(MessageError) {
        guard contentLength == nil else { throw MessageError("There is more than one Content-Length.") }
        guard !isChunked else { throw Self.bothFramings }
        guard isPlainlyWritten(field, in: bytes, lineEnd: lineEnd) else { throw badBlank("Content-Length") }
        contentLength = try Self.decimal(field.value, in: bytes)
    }

    private mutating func noteTransferEncoding(
        _ field: Field, in bytes: Span<UInt8>, lineEnd: Int
    ) throws(MessageError) {
        guard contentLength == nil else { throw Self.bothFramings }
        guard !isChunked else { throw MessageError("There is more than one Transfer-Encoding.") }
        guard isPlainlyWritten(field, in: bytes, lineEnd: lineEnd) else { throw badBlank("Transfer-Encoding") }
        guard field.value.equalsIgnoringCase(Self.chunked, in: bytes) else {
            throw Self.codingError(field.value, in: bytes)
        }
        isChunked = true
    }

    private static let chunked = [UInt8]("chunked".utf8)

    private static let bothFramings = MessageError("The message has both Content-Length and Transfer-Encoding.")

    /// Whether the only whitespace around the value is at most one space after the colon. RFC 9110 5.5 allows any
    /// number of spaces and tabs. A server that skips only some of them could read another framing. Recipients of answers
    /// skip them all, but most of them ignore a field with whitespace before its colon.
    private func isPlainlyWritten(_ field: Field, in bytes: Span<UInt8>, lineEnd: Int) -> Bool {
        let colon = Int(field.name.end)
        if isAnswer { return bytes[colon] == ASCII.colon }
        let gap = Int(field.value.start) - colon
        return Int(field.value.end) == lineEnd && (gap == 1 || (gap == 2 && bytes[colon + 1] == ASCII.space))
    }

    private func badBlank(_ name: StaticString) -> MessageError {
        MessageError(
            isAnswer
                ? "There is whitespace between \(name) and its colon."
                : "\(name) has whitespace around it beyond the one space after the colon.")
    }

    /// Reads `1*DIGIT` (RFC 9110 8.6) up to the largest signed 64-bit number. Refuses a leading zero, which some
    /// parsers take for octal.
    private static func decimal(_ value: ByteRange, in bytes: Span<UInt8>) throws(MessageError) -> UInt64 {
        guard value.count <= 19 || !value.range.allSatisfy({ ASCII.isDigit(bytes[$0]) }) else {
            throw MessageError("Content-Length is too large.")
        }
        guard !value.isEmpty, value.count == 1 || bytes[Int(value.start)] != ASCII.zero else {
            throw MessageError("Content-Length is not a plain decimal number.")
        }
        var number: UInt64 = 0
        for index in value.range {
            guard ASCII.isDigit(bytes[index]), value.count <= 19 else {
                throw MessageError("Content-Length is not a plain decimal number.")
            }
            number = number * 10 + UInt64(bytes[index] - ASCII.zero)
        }
        guard number <= UInt64(Int64.max) else { throw MessageError("Content-Length is too large.") }
        return number
    }

    /// The error for a value other than `chunked`: 501 for codings before a final `chunked` (RFC 9112 6.1), otherwise
    /// 400, because the end of the body is unclear (6.3).
    private static func codingError(_ value: ByteRange, in bytes: Span<UInt8>) -> MessageError {
        let unclear = MessageError("Transfer-Encoding is not exactly one 'chunked'.")
        var start = Int(value.start)
        let end = Int(value.end)
        while start < end {
            var index = start
            while index < end, ASCII.isToken(bytes[index]) { index += 1 }
            let coding = ByteRange(start, index)
            let isChunked = coding.equalsIgnoringCase(chunked, in: bytes)
            if index == end {
                return isChunked && start > Int(value.start)
                    ? MessageError(status: 501, detail: "No transfer coding but 'chunked' is supported.") : unclear
            }
            guard !coding.isEmpty, !isChunked, bytes[index] == ASCII.comma else { return unclear }
            index += 1
            if index < end, bytes[index] == ASCII.space { index += 1 }
            start = index
        }
        return unclear
    }

    /// Refuses names such as `Content_Length` and `Transfer.Encoding`, which CGI-like servers take for the framing fields.
    private func refuseLookalike(_ name: ByteRange, in bytes: Span<UInt8>) throws(MessageError) {
        guard name.count == 14 || name.count == 17 else { return }
        let dashed = MangledName.dashed(name, in: bytes)
        if dashed == Self.lengthName || dashed == Self.codingName {
            throw MessageError(
                "A field name is Content-Length or Transfer-Encoding with another mark in place of the hyphen.")
        }
    }

    private static let lengthName = [UInt8]("content-length".utf8)
    private static let codingName = [UInt8]("transfer-encoding".utf8)

    // MARK: Connection

    /// Reads `#connection-option` (RFC 9110 7.6.1), each a token. Refuses a malformed list, in which the next recipient
    /// might see other names.
    private mutating func noteConnection(_ value: ByteRange, in bytes: Span<UInt8>, _ offset: Int) throws(MessageError)
    {
        var index = Int(value.start)
        let end = Int(value.end)
        while index < end {
            let start = index
            if bytes[index] == ASCII.comma || ASCII.isBlank(bytes[index]) {
                index += 1
                continue
            }
            while index < end, ASCII.isToken(bytes[index]) { index += 1 }
            let option = index
            while index < end, ASCII.isBlank(bytes[index]) { index += 1 }
            if option > start, index == end || bytes[index] == ASCII.comma {
                try noteOption(start, option, in: bytes, offset)
                continue
            }
            guard isAnswer else { throw Self.malformedConnection }
            (isIrregular, saysClose) = (true, true)
            while index < end, bytes[index] != ASCII.comma { index += 1 }
        }
    }

    private static let malformedConnection = MessageError("Connection is not a list of names.")
    private static let close = [UInt8]("close".utf8)

    private mutating func noteOption(
        _ start: Int, _ end: Int, in bytes: Span<UInt8>, _ offset: Int
    ) throws(MessageError) {
        optionCount += 1
        guard optionCount <= HeadLimits.maxConnectionOptions else {
            throw MessageError("Connection lists more than \(HeadLimits.maxConnectionOptions) names.")
        }
        let known = KnownField.recognized(bytes, start, end)
        switch known {
        case .keepAlive: saysKeepAlive = true
        case .upgrade: saysUpgrade = true
        case .other:
            let option = ByteRange(start, end)
            if option.equalsIgnoringCase(Self.close, in: bytes) {
                saysClose = true
            } else {
                named.append(ByteRange(start + offset, end + offset))
            }
        default:
            if !known.survivesConnection { namedKnown |= known.bit }
        }
    }

    /// Whether the connection may serve another message after this one (RFC 9112 9.3).
    func persists(_ version: HTTPVersion) -> Bool { !saysClose && (version == .http11 || saysKeepAlive) }

    func applyConnection(to fields: inout [Field], in bytes: Span<UInt8>) {
        guard namedKnown != 0 || !named.isEmpty else { return }
        for index in fields.indices where !fields[index].isHopByHop {
            let known = fields[index].known
            if known == .other {
                fields[index].isHopByHop = names(bytes.extracting(fields[index].name.range), in: bytes)
            } else if namedKnown & known.bit != 0 {
                fields[index].isHopByHop = true
            }
        }
    }

    /// Whether `Connection` names this field. The field need not be in the head; it may be a trailer.
    func connectionNames(_ name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        guard namedKnown != 0 || !named.isEmpty else { return false }
        let known = KnownField.recognized(name, 0, name.count)
        return known == .other ? names(name, in: bytes) : namedKnown & known.bit != 0
    }

    private func names(_ name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        named.contains { option in
            option.count == name.count
                && name.indices.allSatisfy { offset in
                    ASCII.lowercased(bytes[Int(option.start) + offset]) == ASCII.lowercased(name[offset])
                }
        }
    }
}
