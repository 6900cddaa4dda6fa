import Reactor

/// Who was given which credential, or denied it. A plain value: it is written elsewhere than on the loop.
///
/// Nothing that the program sent is in it, nor anything secret: no path, no query, no field.
public struct AuditRecord: Sendable {
    public enum Result: String, Sendable {
        /// The request went to the upstream with it.
        case given
        /// The proxy answered itself, and no upstream saw the credential.
        case denied
    }

    /// When the request was over.
    public var time = WallTime(seconds: 0, nanoseconds: 0)
    public var result = Result.denied
    /// What the program was answered; 499: it left before, 0: the answer was cut.
    public var status = 0
    /// Why the proxy answered by itself: the last word of the problem's `type`.
    public var reason: String?
    /// `nil`: it was not found out which one was meant.
    public var upstream: String?
    /// Place of the rule in the configuration's `upstreams`.
    public var rule: Int?
    /// Whose token it is; `nil` where the rule has no client.
    public var client: String?
    /// Kinds and names of what the rule puts on, where it has no client; never values.
    public var injection: String?
    /// Of `proxy.users`.
    public var user: String?
    /// Who called, on a Unix socket.
    public var uid: UInt32?
    /// Where it came in; `nil`: nobody listens there any more.
    public var listener: SocketAddress?
    /// Who called, by TCP.
    public var address: SocketAddress?

    package init() {}
}
