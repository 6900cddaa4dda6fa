/// The way to find the end of a body (RFC 9112 6.3).
public enum BodyFraming: Sendable, Equatable {
    case none
    /// Number of bytes; `.length(0)` if the message says `Content-Length: 0`.
    case length(UInt64)
    /// Ends with the last chunk and its trailers.
    case chunked
    /// Ends with the connection (or the HTTP/2 stream): responses only.
    case untilClose

    /// Whether the message may have bytes of a body.
    public var hasContent: Bool {
        switch self {
        case .none, .length(0): false
        case .length, .chunked, .untilClose: true
        }
    }
}
