/// Something happened to a client's token.
public struct HeimdallrEvent: Sendable, Equatable {
    public let client: String
    public let kind: Kind

    public enum Kind: Sendable, Equatable {
        case needsAuthentication
        /// The first one, or the first after a loss. `stored`: it was taken up from the store.
        case tokenAcquired(expiresIn: Duration, stored: Bool)
        case tokenRefreshed(expiresIn: Duration)
        case tokenLost(LossReason)
        case tokenFailed(HeimdallrError)
        /// A sign-in did not end with a token; what the client had before is as it was.
        case loginFailed(LoginError)
        /// An early warning: the refresh token's own life ends soon, and then somebody has to log in. Once for each.
        case refreshTokenEnding(expiresIn: Duration)
    }

    public enum LossReason: Sendable, Hashable {
        /// It expired and no new one had come.
        case expired
        /// The protected resource refused it.
        case rejected
        /// `invalidateAccessToken()`, `clear()`
        case discarded
        /// The refresh token is no longer accepted.
        case grantGone
    }

    public init(client: String, kind: Kind) {
        self.client = client
        self.kind = kind
    }

    /// As logs and metrics name it.
    public var name: String {
        switch kind {
        case .needsAuthentication, .refreshTokenEnding: "needs_authentication"
        case .tokenAcquired: "token_acquired"
        case .tokenRefreshed: "token_refreshed"
        case .tokenLost: "token_lost"
        case .tokenFailed, .loginFailed: "token_failed"
        }
    }
}
