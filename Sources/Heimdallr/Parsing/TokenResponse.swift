/// A successful answer of a token endpoint, as sent: RFC 6749 section 5.1. Prints as `<redacted>`.
public struct TokenResponse: Sendable, Equatable, Redacted {
    /// `access_token`. Later refused unless it is one or more bytes from 0x21 to 0x7E.
    public var accessToken: Secret
    /// `token_type`; only Bearer is used, and what `HeimdallrConfiguration.treatAsBearer` names.
    public var tokenType: String?
    /// `expires_in`, in seconds; may be negative, a fraction or far too much. `nil`: the answer has none.
    public var expiresIn: Double?
    /// `refresh_token`. `nil`: the answer has none, and the old one stays.
    public var refreshToken: Secret?
    /// Life of the refresh token in seconds; 0: no end. `nil`: the answer does not say.
    public var refreshTokenExpiresIn: Double?
    /// `id_token` (OpenID Connect Core section 3.1.3.3), not verified yet.
    public var idToken: Secret?
    /// `scope`: the granted scope. `nil`: the answer has none, so all that was asked for.
    public var scope: [String]?
    /// Other members. Each call parses the answer, so that secret values don't stay in memory.
    public var extra: [String: JSONValue] {
        get { members.values }
        set { members = SecretMembers(newValue) }
    }
    var members: SecretMembers
    /// The key of the request's DPoP proof.
    @Uncompared var binding: DPoPKey?
    /// Number of the client certificate of the request's connection, where tokens are bound to it.
    @Uncompared var certificate: UInt64?
    /// The server and the client of the request, where an API's documents named them.
    @Uncompared var enrolment: Enrolment?
    /// The token is not used from this instant on, whatever `expiresIn` says.
    @Uncompared var endsAt: ContinuousClock.Instant?
    /// Secrets of the request, and of the client at that time.
    @Uncompared var requestSecrets: [Secret] = []

    /// For a parser of your own: the parameters are the properties of the same names.
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

/// Fault of a token endpoint's answer. The texts are fixed sentences, with a token type made printable.
public enum TokenResponseError: Error, Sendable, Hashable, CustomStringConvertible {
    /// It has no bytes, or white space only.
    case emptyBody
    /// It is not JSON: RFC 8259.
    case notJSON
    /// It is JSON, but not an object with the members that are needed.
    case notAnObject
    /// `access_token` is missing, empty or not a string.
    case noAccessToken
    /// `access_token` holds bytes that a header field may not hold.
    case badAccessToken
    /// `refresh_token` is not a string of printable ASCII.
    case badRefreshToken
    /// `token_type` is missing, and the configuration has no `defaultTokenType`.
    case noTokenType
    /// `token_type` is neither Bearer nor in `treatAsBearer`: what the server wrote, made printable.
    case unknownTokenType(String)
    /// `token_type` is not DPoP, though the request had a proof (RFC 9449 section 5): the server does not bind tokens.
    case notBound
    /// `token_type` is `N_A`: the issued token is no access token (RFC 8693 section 2.2.1).
    case notAnAccessToken
    /// `expires_in` says that the token has expired already.
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
        case .notBound:
            "the token_type is not DPoP: the server does not bind tokens for this client; switch that on there, or leave "
                + "out dpop"
        case .notAnAccessToken:
            "the token_type is N_A: what was issued is no access token; requested_token_type can ask for one"
        case .alreadyExpired: "the token had expired when it came"
        }
    }
}
