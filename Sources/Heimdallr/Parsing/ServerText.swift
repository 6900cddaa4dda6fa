/// Text that a server sent, made fit to be shown.
package enum ServerText {
    static let maxCharacters = 256

    /// Live secrets (in the spellings a server could echo) become `<redacted>`, what does not print becomes `?`, and
    /// the rest is cut at 256 characters.
    package static func sanitize(_ text: String, hiding secrets: [Secret]) -> String {
        let bytes = SecretSpelling.replacing(
            secrets, in: Array(text.utf8.prefix(16 * 1024)), by: mark, enough: 4 * (maxCharacters + 1))
        var output = ""
        for (count, scalar) in String(decoding: bytes, as: UTF8.self).unicodeScalars.enumerated() {
            if count == maxCharacters {
                output += "…"
                break
            }
            output.unicodeScalars.append(isPrintable(scalar) ? scalar : "?")
        }
        return output
    }

    private static let mark = Array("<redacted>".utf8)

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        // Format characters can turn a line around on a terminal; separators can break it.
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}
