/// Result of a handshake. After `done` a second result may follow: `alert` or `silent`, if the client leaves before its
/// first byte of data.
public enum HandshakeEnd: Sendable, Equatable {
    /// - Parameters:
    ///   - version: `TLSv1.2` or `TLSv1.3`.
    ///   - applicationProtocol: chosen by ALPN (RFC 7301); `nil` when the client offered none.
    ///   - serverName: from the client (RFC 6066 section 3), in lower case.
    case done(version: String, applicationProtocol: String?, serverName: String?)
    /// The client refused by an alert, most often because of our certificate.
    case alert(TLSAlert)
    /// The client ended the connection inside the handshake.
    case ended
    /// The connection failed inside the handshake, most often by a reset.
    case reset
    /// The client left after the handshake without having sent a byte.
    case silent
    /// The server refused the client with this alert. `nil` for no alert: most often, the client does not speak TLS.
    case refused(TLSAlert?)
    /// The server ended the handshake, because it took too long or the limit of handshakes was reached.
    case abandoned
}
