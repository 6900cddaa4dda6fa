internal import WireText

/// Makes any text safe between tags and in a quoted attribute.
public enum HTMLText {
    /// What stands for something that can't be shown.
    static let replacement = "\u{FFFD}"

    /// Goes by scalars, not by characters: a quotation mark stays one with a combining accent behind it.
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
