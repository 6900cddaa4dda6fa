/// Sends one HTTP exchange. The seam to the network: token requests go through it, nothing else does.
///
/// What an implementation owes its caller:
/// - it honours `HeimdallrHTTPRequest.timeout`, from connect to the last byte, and `HeimdallrHTTPRequest.maxBodyBytes`;
/// - it never follows a redirect and never adds credentials of its own;
/// - it stops, throwing, when the calling task is cancelled.
public protocol HeimdallrHTTPClient: Sendable {
    /// - Throws: `HeimdallrHTTPClientError`. Anything else that is thrown counts as `HeimdallrHTTPClientError.other`.
    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse
}

/// Why there is no answer. Fixed sentences, printable; of a peer's words only what a certificate says can be in them.
public enum HeimdallrHTTPClientError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The connection was refused, reset or cut.
    case connect
    case dns
    /// And why, in the words of the TLS library; empty when it says nothing. May hold what the peer's certificate says.
    case tls(String)
    case timeout
    case bodyTooLarge
    /// What the peer sent is not HTTP, or something else that has no name here.
    case other

    public var description: String {
        switch self {
        case .connect: "the connection could not be made, or broke"
        case .dns: "the host name could not be resolved"
        case .tls(""): "the TLS handshake failed: check the certificate, its name and the trust anchors"
        case .tls(let reason): "the TLS handshake failed: \(ServerText.sanitize(reason, hiding: []))"
        case .timeout: "no complete answer came in time"
        case .bodyTooLarge: "the answer is larger than what is accepted"
        case .other: "the exchange failed"
        }
    }
}
