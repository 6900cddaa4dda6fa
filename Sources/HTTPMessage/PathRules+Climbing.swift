import WireText

extension PathRules {
    /// Limit of decodings. A path that the next decoding would still change counts as climbing.
    private static let maxDecodings = 5

    /// Whether some server could resolve the path to a place outside the folder to which a proxy appends the path. The
    /// path then has one of:
    ///
    /// - `..` as a segment: plain, escaped once or repeatedly, in overlong UTF-8, or as `%u002e`. It may follow an
    ///   escaped slash. Some servers cut off the text after it, from a semicolon (`..;x`), or from an escaped question
    ///   mark, hash, NUL or other control;
    /// - dots among characters that some servers drop (spaces of any script, controls, invalid UTF-8), and characters
    ///   that Unicode normalization turns into dots or slashes (`%ef%bc%8e`);
    /// - a backslash, plain or escaped: some servers read it as a slash.
    ///
    /// Unlike `isAmbiguous`, accepts `%2f`, `//` and `;`: both readings of such a path stay below that folder.
    /// - Parameter path: path, or path and query; the query is ignored.
    public static func climbs(_ path: Span<UInt8>) -> Bool {
        var end = 0
        var isPlain = true
        while end < path.count, path[end] != ASCII.question {
            switch path[end] {
            case ASCII.percent, ASCII.backslash, ...ASCII.space, 0x7F...: isPlain = false
            case ASCII.dot: if end > 0, path[end - 1] == ASCII.dot { isPlain = false }
            default: break
            }
            end += 1
        }
        if isPlain { return false }
        var bytes = [UInt8](copying: path.extracting(0..<end))
        for _ in 0...maxDecodings {
            if leadsUp(bytes) { return true }
            let decoded = decode(bytes)
            if decoded == bytes { return false }
            bytes = decoded
        }
        return true
    }

    private static func leadsUp(_ path: [UInt8]) -> Bool {
        if path.contains(ASCII.backslash) || isOverlong(path) { return true }
        return path.split(separator: ASCII.slash).contains { segment in
            let kept = segment.prefix { $0 != ASCII.semicolon && $0 != ASCII.question && $0 != ASCII.hash }
            // Some servers end a name at a control character, some drop the character.
            return isDots(kept) || isDots(kept.prefix { $0 >= ASCII.space && $0 != 0x7F })
        }
    }

    /// Whether only dots, two or more, are left for a server that drops invisible characters.
    private static func isDots(_ name: ArraySlice<UInt8>) -> Bool {
        var dots = 0
        for scalar in String(decoding: name, as: UTF8.self).unicodeScalars {
            switch scalar.value {
            // Ideographic full stops are dots in host names (RFC 3490, section 3.1).
            case 0x2E, 0x2024, 0x3002, 0xFE12, 0xFE52, 0xFF61: dots += 1
            case 0x2025, 0xFE30: dots += 2
            case 0x2026, 0xFE19: dots += 3
            case 0x20, 0xFFFD: break
            default: guard isInvisible(scalar) else { return false }
            }
        }
        return dots >= 2
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isDefaultIgnorableCodePoint { return true }
        switch scalar.properties.generalCategory {
        case .control, .format, .spaceSeparator, .lineSeparator, .paragraphSeparator: return true
        default: return false
        }
    }

    /// Whether the path has overlong UTF-8 (RFC 3629, section 10), such as `%c0%ae` for a dot, or the former sequences
    /// of five and six bytes.
    private static func isOverlong(_ path: [UInt8]) -> Bool {
        for (first, second) in zip(path, path.dropFirst()) {
            switch (first, second) {
            case (0xC0...0xC1, 0x80...0xBF), (0xE0, 0x80...0x9F), (0xF0, 0x80...0x8F), (0xF8...0xFD, 0x80...0xBF):
                return true
            default: break
            }
        }
        return false
    }

    /// Decodes each escape once; other text stays.
    private static func decode(_ path: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        var index = 0
        while index < path.count {
            let rest = path[index...]
            if let (value, length) = escape(rest) {
                decoded.append(value)
                index += length
            } else if let scalar = wideEscape(rest) {
                decoded.append(contentsOf: Array(String(scalar).utf8))
                index += 6
            } else if let value = fullWidth(rest) {
                decoded.append(value)
                index += 3
            } else {
                decoded.append(path[index])
                index += 1
            }
        }
        return decoded
    }

    /// Decodes `%xx`.
    private static func escape(_ bytes: ArraySlice<UInt8>) -> (value: UInt8, length: Int)? {
        guard bytes.first == ASCII.percent else { return nil }
        let digits = bytes.dropFirst().prefix(2).compactMap { ASCII.hexValue($0) }
        return digits.count == 2 ? (digits[0] << 4 | digits[1], 3) : nil
    }

    /// Decodes `%uxxxx`, as some servers do. Half a surrogate pair becomes U+FFFD.
    private static func wideEscape(_ bytes: ArraySlice<UInt8>) -> Unicode.Scalar? {
        guard bytes.first == ASCII.percent, bytes.dropFirst().first.map({ $0 | 0x20 }) == UInt8(ascii: "u") else {
            return nil
        }
        let digits = bytes.dropFirst(2).prefix(4).compactMap { ASCII.hexValue($0) }
        guard digits.count == 4 else { return nil }
        let value = digits.reduce(UInt32(0)) { $0 << 4 | UInt32($1) }
        return Unicode.Scalar(value) ?? "\u{FFFD}"
    }

    /// Decodes U+FF01 to U+FF5E, which Unicode normalization (NFKC) turns into ASCII.
    private static func fullWidth(_ bytes: ArraySlice<UInt8>) -> UInt8? {
        let start = bytes.startIndex
        guard bytes.count >= 3, bytes[start] == 0xEF else { return nil }
        switch (bytes[start + 1], bytes[start + 2]) {
        case (0xBC, 0x81...0xBF): return bytes[start + 2] - 0x60
        case (0xBD, 0x80...0x9E): return bytes[start + 2] - 0x20
        default: return nil
        }
    }
}
