/// How a client is doing at one moment, to be shown to people. Holds no secret.
public struct HeimdallrStatus: Sendable, Equatable {
    /// State of the client's token.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// Nobody has asked yet, or the store is being read.
        case starting
        /// There is a token that may be used.
        case ready
        /// No token; a token request is under way or about to be.
        case fetching
        /// No token, and no request for one since the last one expired.
        case idle
        /// No token; the last attempt failed and the next one is due later.
        case backingOff = "backing_off"
        /// A new token requires a person's login, or a new refresh token in the configuration. With a token still in
        /// use: see `HeimdallrStatus.isTokenRefused`.
        case needsAuthentication = "needs_authentication"
        /// `Heimdallr.shutdown()` was called.
        case stopped
    }

    /// The name of the client: `Heimdallr.name`.
    public var client: String
    /// The grant type of its first token, such as `client_credentials`.
    public var grantType: String
    /// How a person logs in. `nil`: it gets its tokens without a person.
    public var loginMethod: LoginMethod?
    /// Name of the signed-in person, from a verified id token. Printable, at most 256 characters.
    public var signedInAs: String?
    /// The scopes that the current token was granted.
    public var scope: [String]
    /// Whether there is a token, and if not, why.
    public var state: State
    /// How long the current token may still be used; `nil`: there is none.
    public var expiresIn: Duration?
    /// Whether there is a refresh token, so that the next token requires no person.
    public var hasRefreshToken: Bool
    /// How long the refresh token itself may still be used, where the server said so.
    public var refreshTokenExpiresIn: Duration?
    /// How long ago a token request last succeeded.
    public var sinceLastSuccess: Duration?
    /// The last failure; `nil` once a token request has succeeded.
    public var lastError: HeimdallrError?
    /// How long ago `lastError` was.
    public var sinceLastError: Duration?
    /// How long until the next token request, if one is planned.
    public var nextAttemptIn: Duration?
    /// How many callers wait for a token.
    public var waiters: Int
    /// Fault of the store. Meanwhile the token is kept in memory only.
    public var storeFault: String?
    /// Whether the store has only a record of this name for another server or account, which stays unused.
    public var hasForeignRecord = false
    /// Whether the client has had a first outcome: a token, an error, or the need for a login.
    public var hasSettled: Bool
    /// The requested scopes that the token lacks. A refresh token counts as `offline_access`, `signedInAs` as `openid`.
    public var scopeNotGranted: [String] = []
    /// Why the sign-in ended: the server's error, or the reason why the server could not be asked. `nil` otherwise.
    public var cause: TokenEndpointFault?
    /// How long ago `cause` was.
    public var sinceCause: Duration?
    /// Whether a resource answered `invalid_token` and only a login can bring another token. The token stays in use.
    public var isTokenRefused = false
    /// `HeimdallrConfiguration.issuer`.
    public var issuer: String?
    /// The address, without its query, of the last request to the authorization server.
    public var lastAddress: String?
    /// The encoding of the last Basic credentials. `nil`: every encoding gives the same bytes.
    public var ambiguousEncoding: BasicEncoding?
    /// Server and client that were found in an API's documents; `nil`: the configuration names them.
    public var enrolment: EnrolmentReport?
    /// Number of remembered callers whose own tokens are exchanged; `nil`: the client has its own token.
    public var callers: Int?
}

extension HeimdallrStatus {
    /// Why a login is required, as text behind a colon; `nil` when the reason is unknown.
    public var needsAuthenticationBecause: String? {
        if let cause { return cause.description }
        return isTokenRefused
            ? "an API refused the token (invalid_token), and there is no refresh token to get another with" : nil
    }

    mutating func noteScope(wanted: [String]) {
        // One entry of a library's configuration may hold several.
        scopeNotGranted = wanted.flatMap { $0.split(separator: " ").map(String.init) }.filter { name in
            guard !scope.contains(name) else { return false }
            switch name {
            case "offline_access": return !hasRefreshToken
            case "openid": return signedInAs == nil
            default: return true
            }
        }
    }
}

/// How one token request ended, for metrics.
public struct TokenRequestReport: Sendable, Equatable {
    /// The name of the client: `Heimdallr.name`.
    public var client: String
    /// The `grant_type` sent: `refresh_token` for a refresh, whatever the grant.
    public var grantType: String
    /// How it ended.
    public var result: Result
    /// How long the exchange took, from sending to the whole answer; zero when nothing was sent.
    public var duration: Duration

    /// How a token request can end. A small, fixed set, so that the raw values can be a metric's label.
    public enum Result: String, Sendable, Hashable, CaseIterable {
        /// A token came that may be used.
        case success
        /// The server answered with an OAuth error: RFC 6749 section 5.2.
        case refused
        /// The server answered with success, and a body without a usable token.
        case badAnswer = "bad_answer"
        /// The server answered with a redirect, or with an error status and no OAuth error.
        case httpError = "http_error"
        /// No answer came.
        case network
        /// Nothing was sent: the client's secret, its store or the server's metadata could not be had.
        case notSent = "not_sent"
    }
}

extension Heimdallr {
    /// How the client is doing now. Never waits, sends nothing and starts no refresh.
    public func status() -> HeimdallrStatus {
        let now = clock.now()
        var status = look {
            $0.status(client: name, grantType: exchange.grant.type, loginMethod: exchange.grant.loginMethod, now: now)
        }
        let facts = exchange.trace.facts
        status.issuer = exchange.configuration.issuer
        status.enrolment = exchange.enroller?.report
        status.lastAddress = facts.address
        status.ambiguousEncoding = facts.ambiguousEncoding
        if let callers { status.note(callers.overview, now: now) }
        if status.expiresIn != nil { status.noteScope(wanted: exchange.configuration.scope) }
        return status
    }
}
