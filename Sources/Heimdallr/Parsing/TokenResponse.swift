/// A successful answer of a token endpoint, as it was sent: RFC 6749 section 5.1. Nothing is defaulted here.
public struct TokenResponse: Sendable, Equatable, Redacted {
    /// 1 or more octets 0x21–0x7E, or it is refused later.
    public var accessToken: Secret
    public var tokenType: String?
    /// Seconds; may be negative, a fraction or absurd. `nil`: the answer has none.
    public var expiresIn: Double?
    public var refreshToken: Secret?
    /// Seconds, as some servers say how long the refresh token itself lives; 0: without end. `nil`: the answer has none.
    public var refreshTokenExpiresIn: Double?
    /// OpenID Connect, unverified.
    public var idToken: Secret?
    /// `nil`: the answer has none, so it is what was asked for.
    public var scope: [String]?
    /// Every other member. Read anew each time, so that no value stays in memory that may be secret.
    public var extra: [String: JSONValue] {
        get { members.values }
        set { members = SecretMembers(newValue) }
    }
    var members: SecretMembers

    public init(
        accessToken: Secret, tokenType: String?, expiresIn: Double? = nil, refreshToken: Secret? = nil,
        scope: [String]? = nil, extra: [String: JSONValue] = [:], refreshTokenExpiresIn: Double? = nil,
        idToken: Secret? = nil
    ) {
        self.accessToken = accessToken
        self.tokenType = tokenType
        self.expiresIn = expiresIn
        self.refreshToken = refreshToken
        self.scope = scope
        members = SecretMembers(extra)
        self.refreshTokenExpiresIn = refreshTokenExpiresIn
        self.idToken = idToken
    }
}

/// Why a token endpoint's answer is of no use. Fixed sentences, but for what is said to be the server's.
public enum TokenResponseError: Error, Sendable, Hashable, CustomStringConvertible {
    case emptyBody
    case notJSON
    case notAnObject
    case noAccessToken
    /// It holds something that may not stand in a header field.
    case badAccessToken
    case badRefreshToken
    case noTokenType
    /// Not Bearer, and not in `treatAsBearer`: what the server wrote, made printable.
    case unknownTokenType(String)
    /// `expires_in` says that it has expired already.
    case alreadyExpired

    public var description: String {
        switch self {
        case .emptyBody: "the answer is empty"
        case .notJSON: "the answer is not valid JSON"
        case .notAnObject: "the answer is JSON, but not an object"
        case .noAccessToken: "the answer has no access_token"
        case .badAccessToken: "the access_token holds characters that a header field may not hold"
        case .badRefreshToken: "the refresh_token is not a string of printable ASCII"
        case .noTokenType: "the answer has no token_type; default_token_type can supply it"
        case .unknownTokenType(let type): "the token_type is \"\(type)\", not Bearer; treat_as_bearer can name it"
        case .alreadyExpired: "the token had expired when it came"
        }
    }
}
