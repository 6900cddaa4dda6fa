extension PathRules {
    /// Decodings after which a path that still changes is refused.
    private static let maxDecodings = 5

    /// Whether some server could take the path out of the folder that it is put behind:
    ///
    /// - `..` as a segment, plain or escaped, once or several times over, in overlong UTF-8 or as `%u002e`; behind an
    ///   escaped slash; with what some servers cut off: parameters (`..;x`), a question mark, a hash or NUL behind it in
    ///   escaped form, spaces and controls;
    /// - a backslash, plain or escaped: some take it for a slash.
    ///
    /// Unlike `isAmbiguous`, it lets pass what merely could be read in two ways below that folder: `%2f`, `//`, `;`.
    ///
    /// - Parameter path: path, or path and query; the query is not looked at.
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
        var bytes: [UInt8] = []
        for index in 0..<end { bytes.append(path[index]) }
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
            let kept = segment.prefix { byte in
                switch byte {
                case ASCII.semicolon, ASCII.question, ASCII.hash, 0: false
                default: true
                }
            }
            // Some drop spaces and controls at either end.
            let name = kept.filter { $0 > ASCII.space && $0 != 0x7F }
            return name.count >= 2 && name.allSatisfy { $0 == ASCII.dot }
        }
    }

    /// Longer UTF-8 than the character needs (RFC 3629, section 10): `%c0%ae` is a dot to a lax reader.
    private static func isOverlong(_ path: [UInt8]) -> Bool {
        for (first, second) in zip(path, path.dropFirst()) {
            switch (first, second) {
            case (0xC0...0xC1, 0x80...0xBF), (0xE0, 0x80...0x9F), (0xF0, 0x80...0x8F): return true
            default: break
            }
        }
        return false
    }

    /// Each escape once; what is none stays.
    private static func decode(_ path: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        var index = 0
        while index < path.count {
            if let (value, length) = escape(path[index...]) {
                decoded.append(value)
                index += length
            } else {
                decoded.append(path[index])
                index += 1
            }
        }
        return decoded
    }

    /// `%xx`, or `%uxxxx` as some servers read it: of that only what stands for ASCII matters here.
    private static func escape(_ bytes: ArraySlice<UInt8>) -> (value: UInt8, length: Int)? {
        guard bytes.first == ASCII.percent else { return nil }
        let behind = bytes.dropFirst()
        if behind.first.map({ $0 | 0x20 }) == UInt8(ascii: "u") {
            let digits = behind.dropFirst().prefix(4).compactMap { ASCII.hexValue($0) }
            guard digits.count == 4, digits[0] == 0, digits[1] == 0 else { return nil }
            return (digits[2] << 4 | digits[3], 6)
        }
        let digits = behind.prefix(2).compactMap { ASCII.hexValue($0) }
        return digits.count == 2 ? (digits[0] << 4 | digits[1], 3) : nil
    }
}
