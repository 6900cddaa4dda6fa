import Reactor
public import Reports

/// Receivers of the proxy's events, and its questions. Called on the loops, so they must return at once.
public struct ProxyObserver: Sendable {
    /// `nil`: no access log.
    public var accessLog: (@Sendable (RequestRecord) -> Void)?
    /// Called when a request got a credential or was denied one; `nil`: no audit.
    public var audit: (@Sendable (RequestRecord) -> Void)?
    /// `nil`: no spans.
    package var spans: ExchangeSpans?
    /// An exchange with an upstream failed, or a tunnel's dialling.
    public var upstreamFailed: @Sendable (UpstreamFailure) -> Void = { _ in }
    /// Nothing could be served inside a CONNECT that was answered with 200, or in redirected TLS: its target, and what to do.
    public var connectEnded: @Sendable (_ target: [UInt8], _ advice: String) -> Void = { _, _ in }
    /// A program and the proxy did not agree on TLS inside CONNECT, or redirected.
    public var handshakeFailed: @Sendable (FailedHandshake) -> Void = { _ in }
    /// Called when a connection could not be accepted, most likely for want of descriptors.
    public var acceptFailed: @Sendable (SystemError) -> Void = { _ in }

    /// Called off the loops when the secret of a user, named first, can't be read any more. The user is then refused.
    public var userSecretLost: @Sendable (String, any Error) -> Void = { _, _ in }

    /// Called off the loops when an entry of `inject` has no usable value; the entry's name first. The last good value
    /// stays. Only for the first of several failures.
    public var credentialFailed: @Sendable (String, any Error) -> Void = { _, _ in }

    /// Called for wrong passwords of `proxy.users`: their source, the user (`nil`: no such user), and the number since
    /// the last call for this source. At most once in ten seconds per source.
    public var userGuessed: @Sendable (_ peer: String, _ user: String?, _ count: Int) -> Void = { _, _, _ in }

    /// Returns the way to sign in for a client.
    public var signIn: @Sendable (String) -> SignInHint = { client in
        SignInHint(advice: "run heimdallr-proxy login \(client)", url: nil)
    }

    public init() {}
}
