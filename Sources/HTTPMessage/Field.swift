import WireText

/// One field line of a head, as ranges into the parsed buffer.
public struct Field: Sendable, Equatable {
    public var name: ByteRange
    /// Value without surrounding whitespace; may be empty.
    public var value: ByteRange
    public var known: KnownField
    /// Whether the field must not be forwarded, because it describes this connection (RFC 9110 7.6.1) or because
    /// `Connection` names it. Final when the head is complete. For fields in `KnownField.survivesConnection`, such as
    /// Host, `Connection` has no effect. Transfer-Encoding is hop-by-hop, because a forwarder frames the message anew.
    public var isHopByHop: Bool

    init(name: ByteRange, value: ByteRange, known: KnownField, in bytes: Span<UInt8>) {
        self.name = name
        self.value = value
        self.known = known
        self.isHopByHop =
            known == .other ? Self.hasProxyPrefix(name, in: bytes) : known.isHopByHop
    }

    /// Whether the name is `Proxy`, `Proxy-…`, or `Proxy` and another mark. Such fields are for one client and one proxy.
    /// CGI-like servers read any mark as `-`, and turn `Proxy` into the variable HTTP_PROXY (CVE-2016-5385).
    private static func hasProxyPrefix(_ name: ByteRange, in bytes: Span<UInt8>) -> Bool {
        let start = Int(name.start)
        guard name.count >= 5, bytes[start] | 0x20 == 0x70 else { return false }
        if name.count > 5, ASCII.isAlphanumeric(bytes[start + 5]) { return false }
        return bytes[start + 1] | 0x20 == 0x72 && bytes[start + 2] | 0x20 == 0x6F && bytes[start + 3] | 0x20 == 0x78
            && bytes[start + 4] | 0x20 == 0x79
    }
}

/// Splits one whole field line, for responses and trailers, which come line by line.
enum FieldLine {
    /// Splits `line[start..<end]`, without CRLF: `name ":" OWS value OWS` (RFC 9112 5). Refuses lines that RFC 9112
    /// 5.1 and 5.2 refuse: no colon, no name, whitespace before the colon, folding. Also refuses control characters.
    /// - Parameter ofAnswer: whether to remove whitespace before the colon, as from an answer (RFC 9112 5.1). The byte
    ///   behind the name is then no colon.
    /// - Returns: ranges relative to `line`.
    static func split(
        _ line: Span<UInt8>, _ start: Int, _ end: Int, ofAnswer: Bool = false
    ) throws(MessageError) -> (name: ByteRange, value: ByteRange) {
        let line = line.extracting(first: end)
        let nameEnd = ASCII.endOfToken(line, start)
        var index = nameEnd
        if ofAnswer, index < end, line[index] != ASCII.colon { index = endOfBlanks(line, index) }
        guard index < end, line[index] == ASCII.colon, nameEnd > start else {
            throw nameError(nameEnd < end ? line[nameEnd] : ASCII.cr, isFirst: nameEnd == start)
        }
        index += 1
        while index < line.count, ASCII.isBlank(line[index]) { index += 1 }
        let valueStart = index
        index = ASCII.endOfFieldValue(line, index)
        guard index == end else { throw valueError(line[index]) }
        var valueEnd = end
        while valueEnd > valueStart, ASCII.isBlank(line[valueEnd - 1]) { valueEnd -= 1 }
        return (ByteRange(start, nameEnd), ByteRange(valueStart, valueEnd))
    }

    /// The error for a byte that neither continues nor ends a field name.
    static func nameError(_ byte: UInt8, isFirst: Bool) -> MessageError {
        switch byte {
        case ASCII.space, ASCII.tab:
            isFirst
                ? MessageError("A field line begins with whitespace; folded lines are not accepted.")
                : MessageError("There is whitespace in a field name or in front of its colon.")
        case ASCII.colon: MessageError("A field line has no name.")
        case ASCII.lf: MessageError("A line ends in a bare LF; lines end in CRLF.")
        case ASCII.cr: MessageError("A field line has no colon.")
        case 0: MessageError("There is a NUL byte in the head.")
        default: MessageError("A field name has the byte \(hex(byte)), which names can't have.")
        }
    }

    /// The error for a byte that neither continues nor ends a field value.
    static func valueError(_ byte: UInt8) -> MessageError {
        switch byte {
        case ASCII.lf: MessageError("A line ends in a bare LF; lines end in CRLF.")
        case ASCII.cr: MessageError("There is a bare CR in a line; lines end in CRLF.")
        case 0: MessageError("There is a NUL byte in the head.")
        default: MessageError("A field value has the control character \(hex(byte)).")
        }
    }

    static func hex(_ byte: UInt8) -> String {
        (byte < 0x10 ? "0x0" : "0x") + String(byte, radix: 16, uppercase: true)
    }

    /// Limit of a field name's bytes in an error.
    private static let shownName = 40

    @inline(never)
    private static func endOfBlanks(_ line: Span<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < line.count, ASCII.isBlank(line[index]) { index += 1 }
        return index
    }

    /// Returns the error with the place of the line: its number in the head, and its field's name.
    static func error(_ error: MessageError, in line: Span<UInt8>, number: Int) -> MessageError {
        let name = line.extracting(first: min(ASCII.endOfToken(line, 0), shownName)).text
        let sentence = error.detail.hasSuffix(".") ? String(error.detail.dropLast()) : error.detail
        return MessageError(
            status: error.status, detail: "\(sentence) (line \(number)\(name.isEmpty ? "" : ", \(name)")).")
    }
}
