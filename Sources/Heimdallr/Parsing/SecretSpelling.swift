internal import WireText

/// Finds secrets in a server's text, in any spelling: plain, percent-encoded several times, `+` for a space, JSON
/// escapes, HTML references.
enum SecretSpelling {
    /// - Parameters:
    ///   - mark: replacement for each secret. May itself contain a short secret, which is not replaced again.
    ///   - limit: number of bytes after which the result may end.
    ///   - isCut: whether the text was cut, so that a secret may begin in `text` and end after it.
    static func replacing(
        _ secrets: [Secret], in text: [UInt8], by mark: [UInt8], enough limit: Int, isCut: Bool = false
    ) -> [UInt8] {
        var output: [UInt8] = []
        /// End of the last spelling found.
        var covered = 0
        var steps = maxSteps
        for index in text.indices {
            guard output.count < limit else { break }
            var end = covered
            // Search inside a found spelling too: another secret may begin there and end after it.
            for secret in secrets {
                if let found = secret.withSpan({ Self.end(of: $0, in: text, isCut, from: index, &steps) }) {
                    end = max(end, found)
                }
            }
            // After too many steps, the text is probably made to be expensive to search. Its rest is not shown.
            guard steps > 0 else { return output + mark }
            if end > index, index >= covered { output += mark }
            covered = end
            if index >= covered { output.append(text[index]) }
        }
        return output
    }

    /// Largest number of reading steps for one text. They take some tenths of a second.
    private static let maxSteps = 500_000

    /// Returns the end of the longest spelling that begins at `start`. Tries all readings: `%` is plain or an escape.
    /// If the text was cut in the middle of a spelling, returns the end of the text.
    private static func end(
        of secret: Span<UInt8>, in text: [UInt8], _ isCut: Bool, from start: Int, _ steps: inout Int
    ) -> Int? {
        // Plain comparison, up to the first byte with two readings.
        var plain = 0
        while plain < secret.count, start + plain < text.count, !isEscape(text[start + plain]) {
            guard text[start + plain] == secret[plain] else { return nil }
            plain += 1
        }
        guard plain < secret.count else { return secret.isEmpty ? nil : start + plain }
        var places = [start + plain]
        for position in plain..<secret.count {
            if isCut, places.contains(where: { $0 + maxSpelling > text.count }) { return text.count }
            let byte = secret[position]
            var next: [Int] = []
            steps -= places.count
            guard steps > 0 else { return nil }
            for index in places {
                for end in ends(of: byte, in: text, at: index) where !next.contains(end) { next.append(end) }
            }
            guard !next.isEmpty else { return nil }
            places = next
        }
        return places.max()
    }

    /// Length of the longest spelling of one byte, with at most three encodings.
    private static let maxSpelling = 10

    private static func isEscape(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "%"), UInt8(ascii: "+"), UInt8(ascii: "\\"), UInt8(ascii: "&"): true
        default: false
        }
    }

    /// Returns the possible ends of a spelling of `byte` that begins at `index`.
    private static func ends(of byte: UInt8, in text: [UInt8], at index: Int) -> [Int] {
        guard index < text.count else { return [] }
        var ends: [Int] = []
        if text[index] == byte { ends.append(index + 1) }
        if isEscape(text[index]) { ends += escaped(byte, in: text, at: index) }
        return ends
    }

    private static func escaped(_ byte: UInt8, in text: [UInt8], at index: Int) -> [Int] {
        switch text[index] {
        case UInt8(ascii: "+"): byte == UInt8(ascii: " ") ? [index + 1] : []
        case UInt8(ascii: "%"): percent(byte, in: text, at: index)
        case UInt8(ascii: "\\"): backslash(byte, in: text, at: index).map { [$0] } ?? []
        case UInt8(ascii: "&"): reference(byte, in: text, at: index).map { [$0] } ?? []
        default: []
        }
    }

    private static func backslash(_ byte: UInt8, in text: [UInt8], at index: Int) -> Int? {
        guard index + 1 < text.count else { return nil }
        switch text[index + 1] {
        case UInt8(ascii: "u"): return hex(text, index + 2, 4) == Int(byte) ? index + 6 : nil
        case UInt8(ascii: "x"): return hex(text, index + 2, 2) == Int(byte) ? index + 4 : nil
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "'"):
            return text[index + 1] == byte ? index + 2 : nil
        default: return nil
        }
    }

    /// Reads `%2f` and repeated encodings such as `%252f`. Each depth is a separate reading: `%2541` may mean `%41`.
    private static func percent(_ byte: UInt8, in text: [UInt8], at index: Int) -> [Int] {
        var ends: [Int] = []
        var digits = index + 1
        while let value = hex(text, digits, 2) {
            if value == Int(byte) { ends.append(digits + 2) }
            guard value == 0x25 else { break }
            digits += 2
        }
        return ends
    }

    /// Reads `&amp;`, `&#38;` and `&#x26;`.
    private static func reference(_ byte: UInt8, in text: [UInt8], at index: Int) -> Int? {
        guard let end = text[index...].prefix(10).firstIndex(of: UInt8(ascii: ";")) else { return nil }
        let name = String(decoding: text[(index + 1)..<end], as: UTF8.self)
        let value: Int? =
            switch name {
            case "amp": 38
            case "lt": 60
            case "gt": 62
            case "quot": 34
            case "apos": 39
            case _ where name.hasPrefix("#x") || name.hasPrefix("#X"): Int(name.dropFirst(2), radix: 16)
            case _ where name.hasPrefix("#"): Int(name.dropFirst())
            default: nil
            }
        return value == Int(byte) ? end + 1 : nil
    }

    private static func hex(_ text: [UInt8], _ start: Int, _ count: Int) -> Int? {
        guard start + count <= text.count else { return nil }
        var value = 0
        for byte in text[start..<(start + count)] {
            guard let digit = ASCII.hexValue(byte) else { return nil }
            value = value << 4 | Int(digit)
        }
        return value
    }
}
