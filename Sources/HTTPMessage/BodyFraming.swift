/// How the end of a body is found (RFC 9112 6.3).
public enum BodyFraming: Sendable, Equatable {
    /// There is no body.
    case none
    /// This many bytes; `.length(0)` where the message says `Content-Length: 0`.
    case length(UInt64)
    /// Until the last chunk and its trailers.
    case chunked
    /// Until the connection (or the HTTP/2 stream) ends: responses only.
    case untilClose
}
