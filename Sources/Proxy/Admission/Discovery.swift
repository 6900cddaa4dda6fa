import HTTPMessage
import WireText

/// Detects requests for an API's protected resource metadata (RFC 9728, section 3).
enum Discovery {
    private static let wellKnown = Array(".well-known".utf8)
    private static let document = Array("oauth-protected-resource".utf8)
    /// Length of the shortest path to the metadata.
    private static let shortest = wellKnown.count + document.count + 2

    /// Whether a server could take this path for the path of the API's metadata, or for a path below it. Decodes
    /// escapes once, joins slashes, ignores case and parameters of segments. Servers resolve `..` in different ways: in
    /// a path with `..`, `.well-known` and then the document's name may stand anywhere. Allocates nothing.
    static func isMetadata(_ path: Span<UInt8>) -> Bool {
        guard path.count >= shortest, mayHaveHiddenSegment(path) else { return false }
        var segments = Segments()
        var index = 0
        while index < path.count, path[index] != UInt8(ascii: "?") {
            var byte = path[index]
            index += 1
            if byte == UInt8(ascii: "%"), path.count - index >= 2, let high = ASCII.hexValue(path[index]),
                let low = ASCII.hexValue(path[index + 1])
            {
                byte = high << 4 | low
                index += 2
            }
            if segments.take(byte) { return true }
        }
        return segments.end()
    }

    /// Whether a segment may begin with a dot. This cheap check rules out most paths.
    private static func mayHaveHiddenSegment(_ path: Span<UInt8>) -> Bool {
        var isStart = false
        for index in path.indices {
            let byte = path[index]
            switch byte {
            case UInt8(ascii: "?"): return false
            case UInt8(ascii: "%"), UInt8(ascii: "\\"): return true
            case UInt8(ascii: ".") where isStart: return true
            default: isStart = byte == UInt8(ascii: "/")
            }
        }
        return false
    }

    /// State of the check: the segments so far, without empty segments and dot segments.
    private struct Segments {
        private var count = 0
        private var hasWellKnown = false
        /// Whether the segment `oauth-protected-resource` came after `.well-known`.
        private var hasDocument = false
        /// Whether a `..` came.
        private var climbs = false
        /// Number of bytes of the current segment, without its parameters.
        private var length = 0
        private var mayBeWellKnown = true
        private var mayBeDocument = true
        private var isDots = true
        private var isParameter = false

        /// - Returns: whether the path leads to the metadata.
        mutating func take(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "/"), UInt8(ascii: "\\"): return end()
            case UInt8(ascii: ";"): isParameter = true
            case _ where isParameter: break
            default:
                let letter = ASCII.lowercased(byte)
                mayBeWellKnown = mayBeWellKnown && length < wellKnown.count && wellKnown[length] == letter
                mayBeDocument = mayBeDocument && length < document.count && document[length] == letter
                isDots = isDots && byte == UInt8(ascii: ".")
                length += 1
            }
            return false
        }

        /// Ends the current segment.
        /// - Returns: whether the path leads to the metadata.
        mutating func end() -> Bool {
            let (length, isDots) = (length, isDots)
            let isWellKnown = mayBeWellKnown && length == wellKnown.count
            let isDocument = mayBeDocument && length == document.count
            (self.length, self.isDots, isParameter) = (0, true, false)
            (mayBeWellKnown, mayBeDocument) = (true, true)
            switch length {
            case 0: return false
            case 1 where isDots: return false
            case 2 where isDots: climbs = true
            default:
                count += 1
                hasDocument = hasDocument || hasWellKnown && isDocument
                hasWellKnown = hasWellKnown || isWellKnown
            }
            return hasDocument && (climbs || count == 2)
        }
    }
}
