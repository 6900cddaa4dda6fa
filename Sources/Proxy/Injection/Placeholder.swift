import HTTPMessage
import WireText

/// The text of `require_placeholder`. A program sends this text in place of its credential to ask for injection. Only
/// the targets of `inject` are searched.
struct Placeholder: Sendable {
    private let text: [UInt8]

    init(_ text: String) { self.text = Array(text.utf8) }

    /// Whether the placeholder is the whole value, the text after a scheme, or the password of HTTP Basic.
    func isIn(fieldValue value: Span<UInt8>) -> Bool {
        if value.elementsEqual(text) { return true }
        var index = 0
        while index < value.count, ASCII.isTokenByte(value[index]) { index += 1 }
        guard index > 0, index < value.count, ASCII.isBlank(value[index]) else { return false }
        while index < value.count, ASCII.isBlank(value[index]) { index += 1 }
        if value.extracting(index...).elementsEqual(text) { return true }
        return BasicCredentials(value)?.password == text
    }

    /// Whether the value, raw or percent-decoded, is the placeholder. A server may read it either way.
    func isParameter(_ value: Span<UInt8>) -> Bool {
        if value.elementsEqual(text) { return true }
        return PercentEncoding.form.decodeBytes([UInt8](copying: value)) == text
    }

    /// Whether the access key of an AWS signature is the placeholder: `AWS4-HMAC-SHA256 Credential=KEY/…`.
    func isSigner(of value: Span<UInt8>) -> Bool {
        value.starts(with: Array("AWS4-HMAC-SHA256 Credential=".utf8) + text + [UInt8(ascii: "/")])
    }

    /// Whether the access key in `X-Amz-Credential`, percent-decoded, is the placeholder: `KEY/…`.
    func isSigner(inParameter value: Span<UInt8>) -> Bool {
        PercentEncoding.form.decodeBytes([UInt8](copying: value))?.starts(with: text + [UInt8(ascii: "/")]) ?? false
    }
}
