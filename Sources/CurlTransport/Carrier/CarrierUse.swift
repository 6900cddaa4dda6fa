/// Use of a connection, which decides how the pool dials it.
public enum CarrierUse: Sendable, Equatable {
    /// Requests of HTTP/1.1, one after the other.
    case exchanges
    /// Another protocol. A next proxy passes its bytes by CONNECT. The connection is not reused.
    case tunnel
    /// HTTP/2 if the server agrees to it (ALPN, RFC 7301), else as `exchanges`.
    case http2
    /// HTTP/2 with prior knowledge (RFC 9113, section 3.3).
    case knownHTTP2
    /// Only the connected socket is wanted. The server may speak first.
    case socket

    /// Whether a next proxy must not read the bytes.
    var tunnels: Bool { self == .tunnel || self == .knownHTTP2 }
}
