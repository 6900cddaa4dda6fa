import Reactor
public import Reports

/// Where the proxy says what happened, and asks what it does not know. Called on the loops: must return at once.
public struct ProxyObserver: Sendable {
    /// `nil`: no access log.
    public var accessLog: (@Sendable (AccessRecord) -> Void)?
    /// A request was given a credential, or denied one. `nil`: nobody wants to know.
    public var audit: (@Sendable (AuditRecord) -> Void)?
    /// `nil`: no spans.
    package var spans: ExchangeSpans?
    /// An exchange with an upstream failed, or a tunnel's dialling.
    public var upstreamFailed: @Sendable (UpstreamFailure) -> Void = { _ in }
    /// A connection could not be accepted, out of descriptors most likely.
    public var acceptFailed: @Sendable (SystemError) -> Void = { _ in }

    /// The secret of a user of `proxy.users` can't be read any more, so the user can't come in; the name first. Called off
    /// the loops.
    public var userSecretLost: @Sendable (String, any Error) -> Void = { _, _ in }

    /// What an entry of `inject` puts on can't be read, or does not fit: the last one that was good stays. The entry
    /// first. Called off the loops, for the first of several failures.
    public var credentialFailed: @Sendable (String, any Error) -> Void = { _, _ in }

    /// Wrong passwords of `proxy.users` came: where from, for which user (`nil`: there is no such user), and how many since
    /// the last time this was called for that place. No more often than every ten seconds for each place.
    public var userGuessed: @Sendable (_ peer: String, _ user: String?, _ count: Int) -> Void = { _, _, _ in }

    /// How somebody signs in, by the client's name. Asked when a client has no token for want of a person.
    public var signIn: @Sendable (String) -> SignInHint = { client in
        SignInHint(advice: "run heimdallr-proxy login \(client)", url: nil)
    }

    public init() {}
}
