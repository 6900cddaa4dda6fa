internal import WireText

/// Text from a server, which may repeat secrets that we sent to it.
package enum ServerText {
    static let maxCharacters = 256

    /// `ForeignText` of at most 256 characters, with secrets in any spelling replaced by `<redacted>`.
    package static func sanitize(_ text: String, hiding secrets: [Secret]) -> String {
        let bytes = SecretSpelling.replacing(
            secrets, in: Array(text.utf8.prefix(16 * 1024)), by: mark, enough: 4 * (maxCharacters + 1))
        return ForeignText.printable(String(decoding: bytes, as: UTF8.self), most: maxCharacters)
    }

    private static let mark = Array("<redacted>".utf8)
}
