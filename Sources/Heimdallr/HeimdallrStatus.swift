/// A client at one moment, for people. Holds no secret.
public struct HeimdallrStatus: Sendable, Equatable {
    public enum State: String, Sendable, Hashable {
        /// Nobody has asked yet, or the store is being read.
        case starting
        /// There is a token that may be used, and no resource calls it invalid that nobody can replace.
        case ready
        /// No token; a token request is under way or about to be.
        case fetching
        /// No token, and none wanted since the last one expired.
        case idle
        /// No token; the last attempt failed and the next one is due later.
        case backingOff = "backing_off"
        case needsAuthentication = "needs_authentication"
        case stopped
    }

    public var client: String
    public var grantType: String
    /// `nil`: it gets its tokens without a person.
    public var loginMethod: LoginMethod?
    /// Who is signed in, from a verified id token only. Printable, at most 256 characters.
    public var signedInAs: String?
    /// What the current token was granted.
    public var scope: [String]
    public var state: State
    /// Of the current token.
    public var expiresIn: Duration?
    public var hasRefreshToken: Bool
    /// How long the refresh token itself lives on, where the server said so.
    public var refreshTokenExpiresIn: Duration?
    /// How long ago a token request last succeeded.
    public var sinceLastSuccess: Duration?
    /// The last failure, kept until a token request succeeds; and how long ago it was.
    public var lastError: HeimdallrError?
    public var sinceLastError: Duration?
    /// When the next token request is due, if one is planned.
    public var nextAttemptIn: Duration?
    public var waiters: Int
    /// What is wrong with the store; the token serves from memory meanwhile.
    public var storeFault: String?
    /// The client has had its first outcome, good or bad.
    public var hasSettled: Bool
    /// What is asked for and the current token was not granted. `offline_access` and `openid` count as granted when what
    /// they ask for is there.
    public var scopeNotGranted: [String] = []
    /// Why nobody is signed in any more, while that is so: what the server said, or why it could not be asked.
    public var cause: TokenEndpointFault?
    public var sinceCause: Duration?
    /// A resource answered `invalid_token`, and without a refresh token only a person can bring another token. The one there
    /// is goes on being used: other resources may still take it.
    public var isTokenRefused = false
    /// As configured.
    public var issuer: String?
    /// Where the client's last request of its own to the server went; without its query.
    public var lastAddress: String?
    /// How the client's secret was last written, where servers differ about how; `nil`: it makes no difference.
    public var ambiguousEncoding: BasicEncoding?
}

extension HeimdallrStatus {
    /// Why somebody has to sign in, where there is something to say. To stand behind a colon.
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

/// One token request, for metrics.
public struct TokenRequestReport: Sendable, Equatable {
    public var client: String
    /// What was really sent as grant_type.
    public var grantType: String
    public var result: Result
    public var duration: Duration

    /// Few and fixed, so that they can be a metric's label.
    public enum Result: String, Sendable, Hashable, CaseIterable {
        case success
        case refused
        case badAnswer = "bad_answer"
        case httpError = "http_error"
        case network
        case notSent = "not_sent"
    }
}
