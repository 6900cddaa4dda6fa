import HTTPMessage
import WireText

/// The text of `require_placeholder`. A program sends this text in place of its credential to ask for injection. Only
/// the targets of `inject` are searched.
struct Placeholder: Sendable {
    private let text: [UInt8]
    /// Whether the text is the beginning of many placeholders.
    private let isPrefix: Bool

    init(_ text: String) { self.init(text: Array(text.utf8), isPrefix: false) }

    private init(text: [UInt8], isPrefix: Bool) { (self.text, self.isPrefix) = (text, isPrefix) }

    /// Any placeholder that a proxy has issued.
    static let issued = Placeholder(text: PlaceholderSeal.prefix, isPrefix: true)

    private func fits(_ value: Span<UInt8>) -> Bool { isPrefix ? value.starts(with: text) : value.elementsEqual(text) }

    /// Whether the placeholder is the whole value, the text after a scheme, or the password of HTTP Basic.
    /// - Parameter found: gets the placeholder.
    func isIn(fieldValue value: Span<UInt8>, found: (Span<UInt8>) -> Void = { _ in }) -> Bool {
        if fits(value) {
            found(value)
            return true
        }
        var index = 0
        while index < value.count, ASCII.isTokenByte(value[index]) { index += 1 }
        guard index > 0, index < value.count, ASCII.isBlank(value[index]) else { return false }
        while index < value.count, ASCII.isBlank(value[index]) { index += 1 }
        if fits(value.extracting(index...)) {
            found(value.extracting(index...))
            return true
        }
        guard let password = BasicCredentials(value)?.password else { return false }
        // Many programs encode the parts of Basic as a form (RFC 6749, section 2.3.1).
        for text in [password, PercentEncoding.form.decodeBytes(password) ?? []] where fits(text.span) {
            found(text.span)
            return true
        }
        return false
    }

    /// Whether the value, raw or percent-decoded, is the placeholder. A server may read it either way.
    func isParameter(_ value: Span<UInt8>) -> Bool {
        if fits(value) { return true }
        guard let decoded = PercentEncoding.form.decodeBytes([UInt8](copying: value)) else { return false }
        return fits(decoded.span)
    }

    /// Whether the access key of an AWS signature is the placeholder: `AWS4-HMAC-SHA256 Credential=KEY/…`.
    /// - Parameter found: gets the placeholder.
    func isSigner(of value: Span<UInt8>, found: (Span<UInt8>) -> Void = { _ in }) -> Bool {
        value.starts(with: Self.signer) && isKey(value.extracting(Self.signer.count...), found)
    }

    /// Whether the access key in `X-Amz-Credential`, percent-decoded, is the placeholder: `KEY/…`.
    func isSigner(inParameter value: Span<UInt8>, found: (Span<UInt8>) -> Void = { _ in }) -> Bool {
        guard let decoded = PercentEncoding.form.decodeBytes([UInt8](copying: value)) else { return false }
        return isKey(decoded.span, found)
    }

    private static let signer = Array("AWS4-HMAC-SHA256 Credential=".utf8)

    private func isKey(_ scope: Span<UInt8>, _ found: (Span<UInt8>) -> Void) -> Bool {
        let end = scope.position(of: ASCII.slash)
        guard end < scope.count, fits(scope.extracting(first: end)) else { return false }
        found(scope.extracting(first: end))
        return true
    }
}
