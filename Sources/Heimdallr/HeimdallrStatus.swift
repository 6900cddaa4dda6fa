/// State of a client at one moment, for people. Contains no secret.
public struct HeimdallrStatus: Sendable, Equatable {
    /// State of the client's token.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// No token was needed yet, or the store is being read.
        case starting
        /// There is a valid token.
        case ready
        /// No token. A token request is in progress, or begins soon.
        case fetching
        /// No token, and no caller has needed a token since the last token expired.
        case idle
        /// No token. The last attempt failed, and the next attempt is due later.
        case backingOff = "backing_off"
        /// A new token requires a person's login, or a new refresh token in the configuration. A token may still be in
        /// use: see `HeimdallrStatus.endsBy` and `HeimdallrStatus.isTokenRefused`.
        case needsAuthentication = "needs_authentication"
        /// `Heimdallr.shutdown()` was called.
        case stopped
    }

    /// The name of the client: `Heimdallr.name`.
    public var client: String
    /// The grant type of the first token, such as `client_credentials`.
    public var grantType: String
    /// Method of a person's login; `nil`: the client gets its tokens without a person.
    public var loginMethod: LoginMethod?
    /// Name of the signed-in person, from a verified id token. Printable, at most 256 characters.
    public var signedInAs: String?
    /// The other person who was signed in before the last login of this process; `nil`: nobody, or the same person.
    public var formerlySignedInAs: String?
    /// The granted scopes of the current token.
    public var scope: [String]
    /// Whether there is a token, and the reason if there is none.
    public var state: State
    /// Time until the current token expires; `nil`: there is none, or no end is known.
    public var expiresIn: Duration?
    /// Whether there is a refresh token, so that the next token requires no person.
    public var hasRefreshToken: Bool
    /// Time until the refresh token expires; `nil`: the server did not state it.
    public var refreshTokenExpiresIn: Duration?
    /// Time since the last successful token request.
    public var sinceLastSuccess: Duration?
    /// The last failure; `nil` after a successful token request.
    public var lastError: HeimdallrError?
    /// Time since `lastError`.
    public var sinceLastError: Duration?
    /// Time until the next planned token request.
    public var nextAttemptIn: Duration?
    /// Number of callers that wait for a token.
    public var waiters: Int
    /// Fault of the store. Until it ends, the token is in memory only.
    public var storeFault: String?
    /// Whether the store has records of this client only for another server, `client_id` or account. None is used.
    public var hasForeignRecord = false
    /// Whether the client has had a first outcome: a token, an error, or the need for a login.
    public var hasSettled: Bool
    /// The requested scopes that the token lacks. A refresh token counts as `offline_access`, `signedInAs` as `openid`.
    public var scopeNotGranted: [String] = []
    /// Reason for the end of the sign-in: the server's error, or the fault of the request. `nil` otherwise.
    public var cause: TokenEndpointFault?
    /// Time since `cause`.
    public var sinceCause: Duration?
    /// Reason why the last login failed; `nil`: there was none since the last token.
    public var lastLoginError: LoginError?
    /// Time since `lastLoginError`.
    public var sinceLastLoginError: Duration?
    /// Whether a resource refused the token as invalid and only a login can bring another token. The token stays in use.
    public var isTokenRefused = false
    /// Source of the current token's end; `nil`: there is no token.
    public var endsBy: TokenEnd?
    /// `HeimdallrConfiguration.issuer`.
    public var issuer: String?
    /// Scopes that the issuer's metadata lists; empty: it lists none, or was not read yet.
    public var scopesSupported: [String] = []
    /// Address of the last request to the authorization server, without its query.
    public var lastAddress: String?
    /// Name of the endpoint at `lastAddress` in metadata, such as `token_endpoint`.
    public var lastEndpoint = "token_endpoint"
    /// Kind of the client's authentication.
    public var authentication = ClientAuthentication.password
    /// The encoding of the last Basic credentials; `nil`: every encoding gives the same bytes.
    public var ambiguousEncoding: BasicEncoding?
    /// Server and client that were found by an API's documents; `nil`: the configuration names both.
    public var enrolment: EnrolmentReport?
    /// Number of remembered callers whose own tokens are exchanged; `nil`: the client has its own token.
    public var callers: Int?
}

extension HeimdallrStatus {
    /// Reason for a required login, as text after a colon; `nil`: unknown.
    public var needsAuthenticationBecause: String? {
        if let cause { return cause.description }
        return isTokenRefused ? Self.tokenRefusal(endsBy) : nil
    }

    /// Whether the sign-in was lost, and requests still get the last token.
    package var isServedAfterLoss: Bool { state == .needsAuthentication && endsBy != nil && !isTokenRefused }

    package static func tokenRefusal(_ endsBy: TokenEnd?) -> String {
        "an API refused the token\(endsBy == .open ? "" : " (invalid_token)"), and there is no refresh token to get a new token"
    }

    mutating func noteScope(wanted: [String]) {
        // In a library's configuration, one entry may hold several scopes.
        scopeNotGranted = GrantedScope.missing(from: scope, wanted: wanted).filter { name in
            // Once a refresh token was refused, its end is told, not that it was never granted.
            !(name == "offline_access" && (hasRefreshToken || cause != nil) || name == "openid" && signedInAs != nil)
        }
    }
}

/// Result of one token request, for metrics.
public struct TokenRequestReport: Sendable, Equatable {
    /// The name of the client: `Heimdallr.name`.
    public var client: String
    /// The `grant_type` sent. For a refresh this is always `refresh_token`.
    public var grantType: String
    /// Result of the request.
    public var result: Result
    /// Time from sending to the complete answer; zero if nothing was sent.
    public var duration: Duration

    /// Possible results. The raw values are a small, fixed set, so they can be a metric's label.
    public enum Result: String, Sendable, Hashable, CaseIterable {
        /// The answer has a valid token.
        case success
        /// The server answered with an OAuth error: RFC 6749 section 5.2.
        case refused
        /// The server answered with a success status, but without a usable token.
        case badAnswer = "bad_answer"
        /// The server answered with a redirect, or with an error status but no OAuth error.
        case httpError = "http_error"
        /// No response was received.
        case network
        /// Nothing was sent: the client's secret, its store or the server's metadata was unavailable.
        case notSent = "not_sent"
    }
}

extension Heimdallr {
    /// Returns the client's current state. Never waits, sends nothing and starts no refresh.
    public func status() -> HeimdallrStatus {
        let now = clock.now()
        var status = look {
            $0.status(client: name, grantType: requests.grant.type, loginMethod: requests.grant.loginMethod, now: now)
        }
        let facts = requests.trace.facts
        status.issuer = requests.configuration.issuer
        status.scopesSupported = requests.directory.known?.scopes ?? []
        status.enrolment = requests.enroller?.report
        status.lastAddress = facts.address
        status.lastEndpoint = facts.endpoint.rawValue
        let authentication = requests.credentials.authentication
        status.authentication =
            authentication == .none && requests.settings.usesMutualTLS ? .certificate : authentication
        status.ambiguousEncoding = facts.ambiguousEncoding
        if let callers { status.note(callers.overview, now: now) }
        if status.endsBy != nil { status.noteScope(wanted: requests.requestedScope) }
        return status
    }
}
