import WireText

/// The head of one response, parsed strictly, line by line from the status line to the blank line. An error becomes a
/// 502, and the connection must not be used again.
///
/// Choices where the RFCs allow several:
/// - Status codes are 100 to 599 (RFC 9110 15). Without a reason, the space behind the code may be missing (RFC 9112 4).
/// - `Transfer-Encoding: chunked` is the only transfer coding, for 1.1 only, and not with Content-Length (RFC 9112
///   6.1). A repeated Content-Length is refused even with equal values.
/// - 1xx and 204 must have no Transfer-Encoding (RFC 9112 6.1) and no Content-Length (RFC 9110 8.6). The exceptions,
///   `Content-Length: 0`, and Transfer-Encoding with 204, are accepted but not forwarded.
/// - Whitespace before a colon is removed (RFC 9112 5.1), but not from a field that frames the message.
/// - A malformed element of Connection names nothing, and the connection is not used again.
public struct ResponseHead: Sendable {
    /// The lines as received, CRLFs included.
    public private(set) var bytes: [UInt8] = []
    /// 100 to 599; 0 before the status line.
    public private(set) var status = 0
    public private(set) var reason = ByteRange.empty
    public private(set) var version = HTTPVersion.http11
    /// Whether the status line says HTTP/2.
    public private(set) var isHTTP2 = false
    /// Ranges into `bytes`. `isHopByHop` is final at the blank line.
    public private(set) var fields: [Field] = []
    /// Final at the blank line, by RFC 9112 6.3: `.none` after HEAD and for 1xx, 204 and 304.
    public private(set) var framing = BodyFraming.none
    /// Whether the connection may be used again after this message.
    public private(set) var keepAlive = false
    /// Whether the response has an Upgrade field and Connection lists `upgrade`, as in a 101 (RFC 9110 15.2.2).
    public private(set) var upgrades = false

    /// Whether the head breaks the grammar, in a way that all recipients read alike. What is forwarded is regular.
    public private(set) var isIrregular = false

    private var requestWasHead = false
    private var isComplete = false
    private var facts = HeadFacts(isAnswer: true)

    public init() {}

    /// Reserves memory for this number of bytes and fields.
    public init(reserving bytes: Int, fields: Int) {
        self.bytes.reserveCapacity(bytes)
        self.fields.reserveCapacity(fields)
    }

    /// Frees the memory of an unusually large head.
    public mutating func shrink() {
        if bytes.capacity > 16 << 10 { bytes = [] }
        if fields.capacity > 64 { fields = [] }
    }

    /// Prepares for the next head, also between an interim response and the final one; keeps memory.
    public mutating func reset(requestWasHead: Bool) {
        bytes.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
        (status, reason, version, isHTTP2) = (0, .empty, .http11, false)
        (framing, keepAlive, upgrades, isComplete, isIrregular) = (.none, false, false, false, false)
        self.requestWasHead = requestWasHead
        facts = HeadFacts(isAnswer: true)
    }

    /// Whether another head follows: the status is 1xx, but not 101.
    public var isInterim: Bool { status / 100 == 1 && status != 101 }

    /// The index in `fields` of the first field of this kind.
    public func index(of known: KnownField) -> Int? { fields.firstIndex { $0.known == known } }

    /// Whether the complete head's `Connection` names a field. A trailer of that name is not forwarded either.
    public func connectionNames(_ name: Span<UInt8>) -> Bool { facts.connectionNames(name, in: bytes.span) }

    /// Reads the next line.
    /// - Parameters:
    ///   - line: with its CRLF.
    ///   - allowHTTP2: whether the connection really speaks HTTP/2, so that `HTTP/2 200 ` is a status line.
    /// - Returns: true at the blank line, when everything is final.
    /// - Throws: 502.
    public mutating func append(line: Span<UInt8>, allowHTTP2: Bool) throws(MessageError) -> Bool {
        do {
            return try take(line, allowHTTP2)
        } catch {
            throw error.fromUpstream
        }
    }

    private mutating func take(_ line: Span<UInt8>, _ allowHTTP2: Bool) throws(MessageError) -> Bool {
        guard !isComplete else { throw MessageError("There are lines behind the end of the head.") }
        let limits = HeadLimits.response
        guard bytes.count + line.count <= limits.maxBytes else {
            throw MessageError("The head is larger than \(limits.maxBytes >> 10) KiB.")
        }
        do {
            return try takeLine(line, allowHTTP2)
        } catch {
            throw isComplete || status == 0 ? error : FieldLine.error(error, in: line, number: fields.count + 2)
        }
    }

    @inline(__always)
    private mutating func takeLine(_ line: Span<UInt8>, _ allowHTTP2: Bool) throws(MessageError) -> Bool {
        let end = try Self.contentEnd(of: line)
        let offset = bytes.count
        bytes.append(copying: line)
        if status == 0 {
            try readStatusLine(line, end, allowHTTP2)
            return false
        }
        guard end > 0 else {
            isComplete = true
            try finish()
            return true
        }
        guard fields.count < HeadLimits.response.maxFields else {
            throw MessageError("The head has more than \(HeadLimits.response.maxFields) fields.")
        }
        let (name, value) = try FieldLine.split(line, 0, end, ofAnswer: true)
        if line[Int(name.end)] != ASCII.colon { isIrregular = true }
        var field = Field(name: name, value: value, known: KnownField.recognized(line, 0, Int(name.end)), in: line)
        try facts.note(field, in: line, lineEnd: end, offset: offset)
        field.name = ByteRange(offset, offset + Int(name.end))
        field.value = ByteRange(offset + Int(value.start), offset + Int(value.end))
        fields.append(field)
        return false
    }

    /// Returns the offset of the line's CRLF. Later steps find other control characters.
    static func contentEnd(of line: Span<UInt8>) throws(MessageError) -> Int {
        let end = line.count - 2
        guard end >= 0, line[end + 1] == ASCII.lf, line[end] == ASCII.cr else {
            throw MessageError("A line ends in a bare LF; lines end in CRLF.")
        }
        return end
    }

    /// RFC 9112 4: `HTTP-version SP status-code SP [ reason-phrase ] CRLF`.
    private mutating func readStatusLine(_ line: Span<UInt8>, _ end: Int, _ allowHTTP2: Bool) throws(MessageError) {
        let malformed = MessageError("The status line doesn't begin with HTTP/1.1 or HTTP/1.0.")
        guard end >= 10, line[0] == 0x48, line[1] == 0x54, line[2] == 0x54, line[3] == 0x50, line[4] == ASCII.slash
        else { throw malformed }
        var index: Int
        switch (line[5], line[6], line[7]) {
        case (0x31, ASCII.dot, 0x31): index = 8
        case (0x31, ASCII.dot, 0x30):
            version = .http10
            index = 8
        case (0x32, ASCII.space, _) where allowHTTP2:
            isHTTP2 = true
            index = 6
        default: throw malformed
        }
        let noCode = MessageError("The status line has no code of three digits between single spaces.")
        guard end >= index + 4, line[index] == ASCII.space else { throw noCode }
        var code = 0
        for digit in index + 1...index + 3 {
            guard ASCII.isDigit(line[digit]) else { throw noCode }
            code = code * 10 + Int(line[digit] - ASCII.zero)
        }
        guard (100...599).contains(code) else { throw MessageError("The status code is not from 100 to 599.") }
        index += 4
        if index == end {
            isIrregular = true
        } else {
            guard line[index] == ASCII.space else { throw noCode }
            index += 1
        }
        reason = ByteRange(index, end)
        index = ASCII.endOfFieldValue(line, index)
        guard index == end else {
            throw MessageError("The reason phrase has the byte \(FieldLine.hex(line[index])).")
        }
        status = code
    }

    private mutating func finish() throws(MessageError) {
        let neverHasBody = status / 100 == 1 || status == 204
        if facts.isChunked {
            guard version == .http11, !isHTTP2 else {
                throw MessageError("An answer of HTTP/1.0 or HTTP/2 has Transfer-Encoding.")
            }
            guard status / 100 != 1 else { throw MessageError("An interim answer has Transfer-Encoding.") }
            if status == 204 { isIrregular = true }
        }
        if neverHasBody, let length = facts.contentLength {
            guard length == 0 else { throw MessageError("An answer with status \(status) has Content-Length.") }
            for index in fields.indices where fields[index].known == .contentLength { fields[index].isHopByHop = true }
        }
        if requestWasHead || neverHasBody || status == 304 {
            framing = .none
        } else if facts.isChunked {
            framing = .chunked
        } else if let length = facts.contentLength {
            framing = .length(length)
        } else {
            framing = .untilClose
        }
        upgrades = facts.saysUpgrade && facts.hasUpgrade && version == .http11 && !isHTTP2
        if facts.isIrregular { isIrregular = true }
        keepAlive = (isHTTP2 || facts.persists(version) && framing != .untilClose && !isIrregular) && status != 101
        let received = bytes
        facts.applyConnection(to: &fields, in: received.span)
    }
}
