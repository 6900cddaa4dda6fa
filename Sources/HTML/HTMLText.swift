internal import WireText

/// Makes any text safe between tags and in a quoted attribute.
public enum HTMLText {
    /// Replaces text that can't be shown.
    static let replacement = "\u{FFFD}"

    /// Works on scalars, not on characters: a quotation mark with a combining accent is still escaped.
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
