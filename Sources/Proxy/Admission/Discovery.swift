import HTTPMessage
import WireText

/// Requests of programs for an API's metadata (RFC 9728 section 3).
enum Discovery {
    private static let wellKnown = Array("/.well-known/oauth-protected-resource".utf8)

    /// Whether a path is that of the API's metadata, with or without a path of the API behind it.
    static func isAsked(_ path: Span<UInt8>) -> Bool {
        guard path.count >= wellKnown.count, path.extracting(..<wellKnown.count).elementsEqual(wellKnown) else {
            return false
        }
        guard path.count > wellKnown.count else { return true }
        let next = path[wellKnown.count]
        return next == UInt8(ascii: "/") || next == UInt8(ascii: "?")
    }
}
