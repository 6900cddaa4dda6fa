/// Sets of characters to escape in JSON strings. A parser decodes the same text from each.
public enum JSONEscaping: Sendable {
    /// Required by RFC 8259 section 7: quotes, backslashes and control characters below the space.
    case required
    /// Also characters that are invisible or change how the text around them looks: for terminals and logs.
    case invisible
    /// Also `<`, because `</script>` would end a script that contains the text.
    case page

    public func quote(_ text: String, to output: (UInt8) -> Void) {
        output(ASCII.quote)
        escape(text, to: output)
        output(ASCII.quote)
    }

    /// Escapes the text, without quotes around it.
    public func escape(_ text: String, to output: (UInt8) -> Void) {
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                output(ASCII.backslash)
                output(UInt8(truncatingIfNeeded: scalar.value))
            case "\n": Self.short("n", output)
            case "\r": Self.short("r", output)
            case "\t": Self.short("t", output)
            case _ where isEscaped(scalar):
                for unit in scalar.utf16 { Self.numeric(unit, output) }
            default:
                for byte in scalar.utf8 { output(byte) }
            }
        }
    }

    private func isEscaped(_ scalar: Unicode.Scalar) -> Bool {
        switch self {
        case .required: scalar.value < 0x20
        case .invisible: scalar.isInvisible
        case .page: scalar == "<" || scalar.isInvisible
        }
    }

    private static func short(_ letter: Unicode.Scalar, _ output: (UInt8) -> Void) {
        output(ASCII.backslash)
        output(UInt8(ascii: letter))
    }

    private static func numeric(_ unit: UInt16, _ output: (UInt8) -> Void) {
        short("u", output)
        for shift: UInt16 in [12, 8, 4, 0] { output(ASCII.hexDigit(UInt8(unit >> shift & 0x0F))) }
    }
}
