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
    /// - Returns: ranges relative to `line`.
    static func split(
        _ line: Span<UInt8>, _ start: Int, _ end: Int
    ) throws(MessageError) -> (name: ByteRange, value: ByteRange) {
        let line = line.extracting(first: end)
        var index = start
        index = ASCII.endOfToken(line, index)
        guard index < end, line[index] == ASCII.colon, index > start else {
            throw nameError(index < end ? line[index] : ASCII.cr, isFirst: index == start)
        }
        let nameEnd = index
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
        default: MessageError("A field name has a character that names can't have.")
        }
    }

    /// The error for a byte that neither continues nor ends a field value.
    static func valueError(_ byte: UInt8) -> MessageError {
        switch byte {
        case ASCII.lf: MessageError("A line ends in a bare LF; lines end in CRLF.")
        case ASCII.cr: MessageError("There is a bare CR in a line; lines end in CRLF.")
        case 0: MessageError("There is a NUL byte in the head.")
        default: MessageError("A field value has a control character.")
        }
    }
}
