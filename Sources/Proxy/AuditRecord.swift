import Reactor

/// A credential that was given to a request, or denied, for the audit stream. A plain value.
///
/// It holds no secret, and nothing that the program sent: no path, no query, no field.
public struct AuditRecord: Sendable {
    public enum Result: String, Sendable {
        /// The request went to the upstream with the credential.
        case given
        /// The proxy answered itself, and no upstream got the credential.
        case denied
    }

    /// End of the request.
    public var time = WallTime(seconds: 0, nanoseconds: 0)
    public var result = Result.denied
    /// Status of the answer; 499 if the client left before, 0 if the answer was cut.
    public var status = 0
    /// Reason for the proxy's own answer: the last word of the problem's `type`.
    public var reason: String?
    /// `nil` if the upstream is unknown.
    public var upstream: String?
    /// Index of the rule in the configuration's `upstreams`.
    public var rule: Int?
    /// Client of the token; `nil` for a rule without a client.
    public var client: String?
    /// Kinds and names of the credentials of a rule without a client, without values.
    public var injection: String?
    /// User of `proxy.users`.
    public var user: String?
    /// User of the client on a Unix socket.
    public var uid: UInt32?
    /// Address of the listener; `nil` after it closed.
    public var listener: SocketAddress?
    /// Address of a TCP client.
    public var address: SocketAddress?

    package init() {}
}
