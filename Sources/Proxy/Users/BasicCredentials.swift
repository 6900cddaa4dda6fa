import HTTPMessage
import WireText

/// User and password of a `Basic` credential (RFC 7617, section 2).
struct BasicCredentials: Equatable {
    let user: String
    let password: [UInt8]

    /// Reads Proxy-Authorization; `nil` if the field is absent, repeated or unreadable.
    init?(_ head: RequestHead, _ bytes: Span<UInt8>) {
        guard let value = head.fields.value(ofOnly: { $0.known == .proxyAuthorization }) else { return nil }
        self.init(bytes[value])
    }

    /// Reads a field value; `nil` for another scheme, invalid base64, control characters, or a missing colon.
    init?(_ value: Span<UInt8>) {
        guard value.count > 6, value.extracting(first: 5).equalsIgnoringCase(Self.scheme),
            value[5] == UInt8(ascii: " ")
        else { return nil }
        var start = 6
        while start < value.count, value[start] == UInt8(ascii: " ") { start += 1 }
        guard let bytes = Base64.decode([UInt8](copying: value.extracting(start...)), as: .padded),
            let text = Self.text(bytes),
            let colon = text.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        user = String(decoding: text[..<colon], as: UTF8.self)
        password = Array(text[(colon + 1)...])
    }

    /// Returns the text in UTF-8; `nil` if it has control characters, which names and passwords must not have.
    static func text(_ bytes: [UInt8]) -> [UInt8]? {
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self).map { Array($0.utf8) } ?? fromLatin1(bytes)
    }

    /// Converts ISO 8859-1 to UTF-8. The challenge asks for UTF-8 (section 2.1), but Python's `requests` ignores that.
    private static func fromLatin1(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { $0 < 0x80 ? [$0] : [0xC0 | $0 >> 6, 0x80 | $0 & 0x3F] }
    }

    private static let scheme = Array("basic".utf8)
}
