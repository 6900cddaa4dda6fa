import Reactor
public import Reports

/// Callbacks for the proxy's events. Most are called on a loop, so all must return at once.
public struct ProxyObserver: Sendable {
    /// `nil`: no access log.
    public var accessLog: (@Sendable (RequestRecord) -> Void)?
    /// Called when a request got a credential or was denied it; `nil`: no audit.
    public var audit: (@Sendable (RequestRecord) -> Void)?
    /// Whether each loop keeps its last requests (`ProxyServer.recentRequests(after:)`).
    public var keepsRequests = false
    /// `nil`: no spans.
    package var spans: ExchangeSpans?
    /// Called when an exchange with an upstream failed, or a tunnel could not connect.
    public var upstreamFailed: @Sendable (UpstreamFailure) -> Void = { _ in }
    /// Called when a limit of the configuration ended an exchange.
    public var limitReached: @Sendable (LimitReport) -> Void = { _ in }
    /// Called when the proxy ended redirected TLS, or a connection after CONNECT's 200, without serving requests in it.
    public var connectEnded: @Sendable (_ target: [UInt8], _ advice: String) -> Void = { _, _ in }
    /// Called when a program's TLS handshake with the proxy failed: inside CONNECT, redirected, or at a listener.
    public var handshakeFailed: @Sendable (FailedHandshake) -> Void = { _ in }
    /// Called when a connection could not be accepted, most likely because no file descriptor was free.
    public var acceptFailed: @Sendable (SystemError) -> Void = { _ in }

    /// Called off the loops with a user's name when this user's secret became unreadable. The user is then refused.
    public var userSecretLost: @Sendable (String, any Error) -> Void = { _, _ in }

    /// Called off the loops with an entry of `inject` whose value could not be read or can't be sent. Called only for
    /// the first of consecutive failures. A good value from an earlier reading stays in use.
    public var credentialFailed: @Sendable (String, any Error) -> Void = { _, _ in }

    /// Called when an API has refused an upstream's credential several times in a row, once in each row.
    public var credentialRefused: @Sendable (CredentialRefusal) -> Void = { _ in }

    /// Called for wrong passwords of `proxy.users`, at most once in ten seconds per source. `user` is `nil` for an
    /// unknown name. `count` is the number of wrong passwords since the last call for this source.
    public var userFailed: @Sendable (_ peer: String, _ user: String?, _ count: Int) -> Void = { _, _, _ in }

    /// Returns how a person signs in for the OAuth client of this name.
    public var signIn: @Sendable (String) -> SignInHint = { client in
        SignInHint(advice: "run heimdallr-proxy login \(client)", url: nil)
    }

    public init() {}
}
