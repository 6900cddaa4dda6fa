/// Use of a connection. It decides how the pool dials.
public enum CarrierUse: Sendable, Equatable {
    /// Requests over HTTP/1.1, one after the other.
    case exchanges
    /// Another protocol. A next proxy passes its bytes through a CONNECT tunnel. The connection is not reused.
    case tunnel
    /// HTTP/2 if the server selects it (ALPN, RFC 7301), otherwise the same as `exchanges`.
    case http2
    /// HTTP/2 with prior knowledge (RFC 9113, section 3.3).
    case knownHTTP2
    /// The connected socket alone. The server may send the first bytes.
    case socket

    /// Whether a next proxy has to tunnel the bytes instead of reading them.
    var tunnels: Bool { self == .tunnel || self == .knownHTTP2 }
}
