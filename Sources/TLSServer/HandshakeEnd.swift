/// How a handshake ended. After `done` another one may follow: `alert` or `silent`, when the client leaves before its
/// first byte.
public enum HandshakeEnd: Sendable, Equatable {
    /// - Parameters:
    ///   - version: `TLSv1.2` or `TLSv1.3`.
    ///   - applicationProtocol: chosen by ALPN (RFC 7301); `nil` when the client offered none.
    ///   - serverName: from the client (RFC 6066 section 3), in lower case.
    case done(version: String, applicationProtocol: String?, serverName: String?)
    /// The client refused, mostly our certificate.
    case alert(TLSAlert)
    /// The client ended the connection inside the handshake.
    case ended
    /// The connection failed inside the handshake, mostly by a reset.
    case reset
    /// The client left after the handshake without having sent a byte.
    case silent
    /// We refused the client, with this alert; `nil` when the client does not speak TLS.
    case refused(TLSAlert?)
    /// The handshake took too long, or made room for a newer one.
    case abandoned
}
