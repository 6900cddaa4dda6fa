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
                if isHidden(scalar) { result += replacement } else { result.unicodeScalars.append(scalar) }
            }
        }
        return result
    }

    /// What does not show, or changes how its surroundings show.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: true
        default: false
        }
    }
}
