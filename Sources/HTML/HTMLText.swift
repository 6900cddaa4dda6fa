internal import WireText

/// Escapes text for use between tags and in quoted attributes.
public enum HTMLText {
    /// Replacement of text that can't be shown.
    static let replacement = "\u{FFFD}"

    /// Escapes scalars instead of characters, so that a quotation mark with a combining accent is escaped, too.
    /// Replaces invisible scalars except line feeds by U+FFFD.
    public static func escaped(_ text: some StringProtocol) -> String {
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            case "`": result += "&#96;"
            case "\n": result.unicodeScalars.append(scalar)
            default:
                if scalar.isInvisible { result += replacement } else { result.unicodeScalars.append(scalar) }
            }
        }
        return result
    }
}
