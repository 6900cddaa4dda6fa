/// Text from outside, such as a server's answer, a row of a database or the name of a file, made safe to display.
public enum ForeignText {
    /// One line: every invisible character becomes `?`.
    /// - Parameter most: the number of Unicode scalars after which the text is cut, with an ellipsis.
    public static func printable(_ text: some StringProtocol, most: Int = 256) -> String {
        var output = ""
        for (count, scalar) in text.unicodeScalars.enumerated() {
            if count == most { return output + "…" }
            output.unicodeScalars.append(scalar.isInvisible ? "?" : scalar)
        }
        return output
    }

    /// All lines of a longer text, each made printable.
    public static func lines(_ text: some StringProtocol) -> String {
        var output = ""
        for scalar in text.unicodeScalars {
            output.unicodeScalars.append(scalar.isInvisible && scalar != "\n" ? "?" : scalar)
        }
        return output
    }
}

extension Unicode.Scalar {
    /// Control characters, separators of lines and paragraphs, characters that reorder or hide text, and characters
    /// without a defined meaning (Unicode, section 4.5: Cc, Cf, Zl, Zp, Co, Cn, Cs).
    public var isInvisible: Bool {
        if isASCII { return value < 0x20 || value == 0x7F }
        return switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned, .surrogate: true
        default: false
        }
    }
}
