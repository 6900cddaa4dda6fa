import TLSServer

/// A program that did not take the proxy's certificate, or with which no TLS was possible. The log tells it, because the
/// program is never served without TLS instead.
public struct FailedHandshake: Sendable {
    /// `HOST:PORT` of the CONNECT.
    public var target: String
    /// Name in `proxy.users`.
    public var user: String?
    public var end: HandshakeEnd

    public var reason: String {
        switch end {
        case .done: ""
        case .alert(let alert): "the program sent the alert \(alert)"
        case .ended: "the program ended the connection within the handshake"
        case .reset: "the program reset the connection within the handshake"
        case .silent: "the program ended the connection after the handshake, before its first byte"
        case .refused(let alert?): "the proxy sent the alert \(alert)"
        case .refused(nil): "the program sent no TLS"
        case .abandoned: "the handshake took too long, or too many others came"
        }
    }

    public var advice: String {
        switch end {
        case .refused(.noApplicationProtocol):
            "only HTTP/1.1 is served inside TLS, and the program offered HTTP/2 alone: set it to HTTP/1.1"
        case .refused(.unrecognizedName): "the program must name the host of its CONNECT, which must be intercepted"
        case .refused, .abandoned, .done: "see what the program does; set intercept: false to leave its TLS alone"
        case .alert, .ended, .reset, .silent:
            "the program may not trust the proxy: start it by heimdallr-proxy exec; one that trusts only certificates of "
                + "its own needs intercept: false"
        }
    }
}
