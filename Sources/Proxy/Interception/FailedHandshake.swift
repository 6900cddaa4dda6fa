public import TLSServer

/// A failed TLS handshake with a program, for the log: the program rejected the certificate, or no TLS was possible.
/// The proxy never serves such a program without TLS.
public struct FailedHandshake: Sendable {
    /// `HOST:PORT` of the CONNECT, or address of the listener.
    public var target: String
    /// Name of the user, certificate's subject, Unix user ID, or address: the first known. Empty at a listener.
    public var caller = ""
    /// `User-Agent` of the CONNECT, printable.
    public var program: String?
    public var end: HandshakeEnd
    /// Number of earlier failures that were not logged; `nil` inside CONNECT, where each failure is logged.
    public var others: Int?

    public init(target: String, end: HandshakeEnd) {
        self.target = target
        self.end = end
    }

    public var reason: String {
        switch end {
        case .done: ""
        case .alert(let alert): "the program sent the alert \(alert)"
        case .ended: "the program ended the connection within the handshake"
        case .reset: "the program reset the connection within the handshake"
        case .silent: "the program ended the connection after the handshake, without sending a request"
        case .refused(let alert?): "the proxy sent the alert \(alert)"
        case .refused(nil): "the program sent no TLS"
        case .abandoned: "the handshake took too long, or too many handshakes were under way"
        }
    }

    /// Whether a program inside CONNECT probably distrusts the proxy's certificate; `false` at a listener.
    public var isDistrust: Bool {
        switch end {
        case .alert, .ended, .reset, .silent: others == nil
        case .done, .refused, .abandoned: false
        }
    }

    /// - Parameter trust: the program's name, and its environment variable for trusted certificates; `nil` if unknown.
    public func advice(_ trust: (program: String, variable: String)? = nil) -> String {
        others == nil ? adviceInside(trust) : adviceAtListener
    }

    private var adviceAtListener: String {
        switch end {
        case .refused(nil): "this listener has `tls`: write https:// in front of its address"
        case .refused(.noApplicationProtocol):
            "only HTTP/1.1 and HTTP/2 are served, and the client offered neither: set it to one of them"
        case .refused: "check the client's TLS versions, and its certificate if the listener has `client_ca_file`"
        case .alert, .ended, .reset, .silent:
            "the client may not trust the listener's certificate: give it the CA certificate, and check the host name"
        case .abandoned, .done: "check the client's log"
        }
    }

    private func adviceInside(_ trust: (program: String, variable: String)?) -> String {
        switch end {
        case .refused(.noApplicationProtocol):
            "only HTTP/1.1 and HTTP/2 are served inside TLS, and the program offered neither: set it to one of them"
        case .refused(.unrecognizedName): "TLS must name the host of the CONNECT, and this host must be intercepted"
        case .refused(.internalError):
            "no certificate could be made for this host: too many were requested at once, or it has an invalid name"
        case .refused, .abandoned, .done: "check the program's log; set intercept: false to leave its TLS alone"
        case .alert, .ended, .reset, .silent:
            "\(trust?.program ?? "the program") may not trust the proxy: start it by heimdallr-proxy exec"
                + (trust.map { ", which sets \($0.variable)" } ?? "")
                + "; if exec has started it, it replaces or ignores that: name roots.pem of the trust folder in its own "
                + "settings; a program that has a fixed list of trusted certificates needs intercept: false"
        }
    }
}
