import WireText

/// `host [ ":" port ]` checked and split without copying (RFC 3986 3.2.2, RFC 9110 4.2).
///
/// Stricter than the grammar, which allows nearly any host. Refuses spellings that resolvers, certificates and other
/// parsers read differently: userinfo, percent-encoding, IPv6 zones, empty labels. Accepts one trailing dot, for the
/// root. If the last label is a decimal or hexadecimal number, the host must be a dotted quad, because `getaddrinfo`
/// reads `2130706433`, `0x7f.1` and `127.1` as 127.0.0.1. Accepts underscores, which names of containers have. An empty
/// port counts as none (RFC 3986 6.2.3); port 0 is refused.
struct AuthorityParts {
    enum Host {
        /// Name without the trailing dot, in its received case.
        case name(ByteRange)
        case ipv4(UInt32)
        case ipv6(high: UInt64, low: UInt64)
    }

    let host: Host
    let port: UInt16?

    init(_ bytes: Span<UInt8>, _ range: ByteRange) throws(MessageError) {
        let bytes = bytes.extracting(first: Int(range.end))
        let start = Int(range.start)
        let end = bytes.count
        guard start < end else { throw MessageError("The host is missing.") }
        var index = start
        if bytes[start] == ASCII.leftBracket {
            while index < end, bytes[index] != ASCII.rightBracket { index += 1 }
            guard index < end, let address = IPv6Text.parse(bytes, start + 1, index) else {
                throw MessageError("There is no valid IPv6 address between the brackets of the host.")
            }
            host = .ipv6(high: address.high, low: address.low)
            index += 1
            guard index == end || bytes[index] == ASCII.colon else {
                throw MessageError("Something other than a port follows the bracketed address of the host.")
            }
        } else {
            index = ASCII.endOfHostName(bytes, index)
            guard index == end || bytes[index] == ASCII.colon else { throw Self.hostError(bytes[index]) }
            // The port is checked first, so that a host with several colons gets the message about IPv6.
            port = try Self.port(bytes, index, end)
            host = try Self.nameOrIPv4(bytes, start, index)
            return
        }
        port = try Self.port(bytes, index, end)
    }

    private static func hostError(_ byte: UInt8) -> MessageError {
        switch byte {
        case ASCII.at: MessageError("The authority has a user name; send an Authorization field instead.")
        case ASCII.percent:
            MessageError("The host is percent-encoded; write it in plain letters, IDNs as punycode (xn--…).")
        case 0x80...: MessageError("The host is not ASCII; write internationalised names as punycode (xn--…).")
        default: MessageError("The host has a character that hosts can't have.")
        }
    }

    private static func nameOrIPv4(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) throws(MessageError) -> Host {
        var nameEnd = end
        if end > start, bytes[end - 1] == ASCII.dot { nameEnd -= 1 }
        guard nameEnd > start else { throw MessageError("The host is missing.") }
        guard nameEnd - start <= 253 else { throw MessageError("The host is longer than 253 bytes.") }
        var labelStart = start
        for index in start..<nameEnd where bytes[index] == ASCII.dot {
            try checkLabel(labelStart, index)
            labelStart = index + 1
        }
        try checkLabel(labelStart, nameEnd)
        guard ASCII.isDigit(bytes[labelStart]), isNumber(bytes, labelStart, nameEnd) else {
            return .name(ByteRange(start, nameEnd))
        }
        guard let address = ipv4(bytes, start, end) else {
            throw MessageError("The host ends in a number but is no IPv4 address of four decimal numbers.")
        }
        return .ipv4(address)
    }

    private static func checkLabel(_ start: Int, _ end: Int) throws(MessageError) {
        guard end > start else { throw MessageError("The host has an empty label.") }
        guard end - start <= 63 else { throw MessageError("The host has a label of more than 63 bytes.") }
    }

    /// Whether the label is decimal, or `0x` with any hexadecimal digits ("ends in a number" of the URL Standard).
    private static func isNumber(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        if end - start >= 2, bytes[start] == ASCII.zero, bytes[start + 1] | 0x20 == 0x78 {
            return (start + 2..<end).allSatisfy { ASCII.isHexDigit(bytes[$0]) }
        }
        return (start..<end).allSatisfy { ASCII.isDigit(bytes[$0]) }
    }

    /// Reads four decimal octets without leading zeros.
    static func ipv4(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> UInt32? {
        var address: UInt32 = 0
        var octet: UInt32 = 0
        var digits = 0
        var dots = 0
        for index in start..<end {
            let byte = bytes[index]
            if byte == ASCII.dot {
                guard digits > 0, dots < 3 else { return nil }
                address = address << 8 | octet
                octet = 0
                digits = 0
                dots += 1
            } else {
                guard ASCII.isDigit(byte), digits < 3, digits == 0 || octet > 0 else { return nil }
                octet = octet * 10 + UInt32(byte - ASCII.zero)
                digits += 1
                guard octet <= 255 else { return nil }
            }
        }
        guard dots == 3, digits > 0 else { return nil }
        return address << 8 | octet
    }

    /// Reads the port. `bytes[start]` is the colon, or `start == end`.
    private static func port(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) throws(MessageError) -> UInt16? {
        guard end - start > 1 else { return nil }
        var number: UInt32 = 0
        for index in start + 1..<end {
            guard ASCII.isDigit(bytes[index]), index - start <= 5 else { throw portError(bytes, index, end) }
            number = number * 10 + UInt32(bytes[index] - ASCII.zero)
        }
        guard let port = UInt16(exactly: number), port > 0 else { throw portError(bytes, end, end) }
        return port
    }

    private static func portError(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> MessageError {
        if (start..<end).contains(where: { bytes[$0] == ASCII.at }) { return hostError(ASCII.at) }
        if (start..<end).contains(where: { bytes[$0] == ASCII.colon }) {
            return MessageError("The host has more than one colon; write an IPv6 address in square brackets.")
        }
        return MessageError("The port is not a number from 1 to 65535.")
    }
}
