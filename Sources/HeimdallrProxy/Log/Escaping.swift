import WireText

/// Escapes text from outside the proxy, so that it can't control a terminal or forge a line of the log.
enum Escaping {
    enum Style { case text, quotedText, json }

    /// Whether a word needs no quotes in a text line.
    static func isPlainWord(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty
            && bytes.allSatisfy { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "=") && isPlainASCII($0, .json) }
    }

    private static func isPlainASCII(_ byte: UInt8, _ style: Style) -> Bool {
        guard byte >= 0x20, byte < 0x7F else { return false }
        return style == .text || (byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\"))
    }

    /// Whether a scalar needs no quotes in a text line.
    static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case " ", "\"", "\\", "=": false
        default: !scalar.isInvisible
        }
    }

    /// Escapes and appends UTF-8 text. Invalid bytes become U+FFFD.
    static func append(_ bytes: some Collection<UInt8>, to line: inout [UInt8], style: Style) {
        // Fast path: nearly all text is plain ASCII.
        if bytes.allSatisfy({ isPlainASCII($0, style) }) {
            line += bytes
            return
        }
        let text = String(decoding: bytes, as: UTF8.self)
        if style == .json {
            JSONEscaping.invisible.escape(text) { line.append($0) }
            return
        }
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"" where style != .text, "\\" where style != .text:
                line.append(UInt8(ascii: "\\"))
                line.append(UInt8(truncatingIfNeeded: scalar.value))
            case "\n": line += "\\n".utf8
            case "\r": line += "\\r".utf8
            case "\t": line += "\\t".utf8
            case _ where scalar.isInvisible: line += "\\u{\(String(scalar.value, radix: 16))}".utf8
            default: line += String(scalar).utf8
            }
        }
    }
}
