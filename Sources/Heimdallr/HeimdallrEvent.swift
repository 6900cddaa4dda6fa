/// An event in the life of a client's token. Contains no secret.
public struct HeimdallrEvent: Sendable, Equatable {
    /// The name of the client: `Heimdallr.name`.
    public let client: String
    /// Kind of the event, with its data.
    public let kind: Kind

    /// Kinds of events.
    public enum Kind: Sendable, Equatable {
        /// The next token requires a person's login, or a new refresh token in the configuration.
        case needsAuthentication
        /// The client has its first token, or the first after a loss. `stored`: whether it came from the store.
        /// `expiresIn` is `nil` if no end is known.
        case tokenAcquired(expiresIn: Duration?, stored: Bool)
        /// A new token has replaced a valid token, or came from a refresh token.
        /// `expiresIn` is `nil` if no end is known.
        case tokenRefreshed(expiresIn: Duration?)
        /// The client lost its token, or can't renew it.
        case tokenLost(LossReason)
        /// A token request failed. The client repeats it later.
        case tokenFailed(HeimdallrError)
        /// A login brought no token. The client keeps its former tokens.
        case loginFailed(LoginError)
        /// The API requires more scopes than the token has. An empty list means a stronger or newer authentication of
        /// the person. The token stays in use.
        case moreConsentNeeded(scope: [String])
        /// A warning, once for each session: the refresh token expires in `expiresIn`. A person then has to log in.
        case refreshTokenEnding(expiresIn: Duration)
    }

    /// Reason for the loss of a token.
    public enum LossReason: String, Sendable, Hashable {
        /// The token expired before a new one arrived.
        case expired
        /// The resource refused the token: `Heimdallr.reject(_:)`.
        case rejected
        /// The program called `invalidateAccessToken()`, `clearAccessToken()` or `logOut(locally:)`, or the client
        /// certificate was replaced.
        case discarded
        /// The server no longer accepts the refresh token.
        case grantGone = "grant_gone"
    }

    /// Makes an event for tests of your own code.
    public init(client: String, kind: Kind) {
        self.client = client
        self.kind = kind
    }

    /// Name of the kind in logs and metrics: one of five fixed words, such as `token_acquired`.
    public var name: String {
        switch kind {
        case .needsAuthentication, .refreshTokenEnding, .moreConsentNeeded: "needs_authentication"
        case .tokenAcquired: "token_acquired"
        case .tokenRefreshed: "token_refreshed"
        case .tokenLost: "token_lost"
        case .tokenFailed, .loginFailed: "token_failed"
        }
    }
}
