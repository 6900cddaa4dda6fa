import WireText

/// Rules for paths that hold for every upstream, whichever way its server reads a path.
public enum PathRules {
    /// Whether servers may resolve the path differently, so that no rule for paths is safe. Such a path has one of:
    ///
    /// - `.` or `..` as a segment, an empty segment (`//`); one slash at the end is fine;
    /// - `;` (parameters, which some servers cut off), a backslash, raw controls, spaces and bytes beyond ASCII;
    /// - a percent sign without two hexadecimal digits;
    /// - `%2f`, `%5c`, `%3b`: slash, backslash and `;`, which some servers decode; encoded controls, also NUL;
    /// - encoded letters, digits, `.`, `-` and `_`: the same as the plain characters (RFC 3986 6.2.2.2), but not for
    ///   every server. Honest programs do not encode them (`%7E` is common and fine);
    /// - `%25` before two hexadecimal digits, which a second decoding turns into an escape;
    /// - overlong UTF-8 (`%c0%ae`);
    /// - escapes, if `climbs` rejects the path.
    /// - Parameter path: path, or path and query; the query is ignored. Empty counts as `/`.
    public static func isAmbiguous(_ path: Span<UInt8>) -> Bool {
        var index = 0
        var segmentStart = 0
        var hasEscapes = false
        while index < path.count {
            let byte = path[index]
            switch byte {
            // Unlike other segments, the last one may be empty.
            case ASCII.question: return isDots(path, segmentStart, index) || hasEscapes && climbs(path)
            case ASCII.slash:
                if index > 0, segmentStart == index || isDots(path, segmentStart, index) { return true }
                segmentStart = index + 1
            case ASCII.percent:
                if isAmbiguousEscape(path, index) { return true }
                hasEscapes = true
                index += 2
            case ASCII.semicolon, ASCII.backslash, ...ASCII.space, 0x7F...: return true
            default: break
            }
            index += 1
        }
        return isDots(path, segmentStart, path.count) || hasEscapes && climbs(path)
    }

    private static func isDots(_ path: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        switch end - start {
        case 1: path[start] == ASCII.dot
        case 2: path[start] == ASCII.dot && path[start + 1] == ASCII.dot
        default: false
        }
    }

    private static func isAmbiguousEscape(_ path: Span<UInt8>, _ index: Int) -> Bool {
        guard let value = escape(path, index) else { return true }
        switch value {
        case 0..<0x20, 0x7F, ASCII.slash, ASCII.backslash, ASCII.semicolon: return true
        case ASCII.dot, ASCII.hyphen, ASCII.underscore: return true
        case _ where ASCII.isAlphanumeric(value): return true
        case ASCII.percent:
            return index + 4 < path.count && ASCII.isHexDigit(path[index + 3]) && ASCII.isHexDigit(path[index + 4])
        case 0xC0, 0xC1: return true
        case 0xE0: return (escape(path, index + 3) ?? 0xFF) < 0xA0
        case 0xF0: return (escape(path, index + 3) ?? 0xFF) < 0x90
        default: return false
        }
    }

    /// The byte encoded by the `%xx` at `index`.
    @inline(__always)
    private static func escape(_ path: Span<UInt8>, _ index: Int) -> UInt8? {
        guard index + 2 < path.count, path[index] == ASCII.percent, let high = ASCII.hexValue(path[index + 1]),
            let low = ASCII.hexValue(path[index + 2])
        else { return nil }
        return high << 4 | low
    }

    /// Whether the path is `prefix` or lies below it, in whole segments.
    ///
    /// A slash at the prefix's end makes no difference: `/v1` and `/v1/` both match `/v1`, `/v1/`, `/v1/x` and `/v1?x`,
    /// and neither matches `/v10`. `/` matches everything. Escapes compare as the characters they encode: `%40` is `@`,
    /// `%7e` is `~`, and the digits' case does not matter. `%2f`, `%3f`, `%25`, `%3b` and `%5c` remain different from
    /// the plain characters. Call `isAmbiguous` first.
    public static func matches(prefix: [UInt8], path: Span<UInt8>) -> Bool { length(of: prefix, in: path) != nil }

    /// Returns the number of the path's bytes that `prefix` matches, without the next slash; `nil` if the path is not
    /// below `prefix`. Has the same rules as `matches`.
    public static func length(of prefix: [UInt8], in path: Span<UInt8>) -> Int? {
        let prefix = prefix.span
        var prefixEnd = prefix.count
        while prefixEnd > 0, prefix[prefixEnd - 1] == ASCII.slash { prefixEnd -= 1 }
        var prefixIndex = 0
        var index = 0
        while prefixIndex < prefixEnd {
            guard index < path.count, path[index] != ASCII.question,
                unit(prefix, &prefixIndex) == unit(path, &index)
            else { return nil }
        }
        guard
            index == path.count || path[index] == ASCII.slash || path[index] == ASCII.question || prefixEnd == 0
        else { return nil }
        return index
    }

    /// Whether a segment is `.` or `..`, also encoded or with parameters. Servers resolve such a segment at any
    /// position.
    public static func hasDotSegment(_ path: Span<UInt8>) -> Bool {
        var index = 0
        while index < path.count, path[index] != ASCII.question, path[index] != ASCII.hash {
            var dots = 0
            var isDots = true
            while index < path.count {
                let byte = path[index]
                if byte == ASCII.question || byte == ASCII.hash { break }
                let value = escape(path, index)
                let meant = value ?? byte
                index += value == nil ? 1 : 3
                if meant == ASCII.slash || meant == ASCII.backslash { break }
                // Parameters: some servers cut them off before they interpret the segment.
                if meant == ASCII.semicolon {
                    if isDots, dots == 1 || dots == 2 { return true }
                    isDots = false
                }
                if meant == ASCII.dot { dots += 1 } else { isDots = false }
            }
            if isDots, dots == 1 || dots == 2 { return true }
        }
        return false
    }

    /// Reads one character, decoded. Encoded reserved characters stay different from the plain ones.
    @inline(__always)
    private static func unit(_ bytes: Span<UInt8>, _ index: inout Int) -> UInt16 {
        let byte = bytes[index]
        guard byte == ASCII.percent, let value = escape(bytes, index) else {
            index += 1
            return UInt16(byte)
        }
        index += 3
        switch value {
        case ASCII.slash, ASCII.question, ASCII.percent, ASCII.semicolon, ASCII.backslash, ASCII.hash:
            return 0x100 | UInt16(value)
        default: return UInt16(value)
        }
    }
}
