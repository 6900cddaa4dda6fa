/// A successful token response, not checked yet: RFC 6749 section 5.1. Prints as `<redacted>`.
public struct TokenResponse: Sendable, Equatable, Redacted {
    /// `access_token`. The client refuses it later unless it is one or more bytes from 0x21 to 0x7E.
    public var accessToken: Secret
    /// `token_type`. Accepted: Bearer, `HeimdallrConfiguration.treatAsBearer`, and DPoP if the request had a proof.
    public var tokenType: String?
    /// `expires_in`, in seconds. It may be negative, a fraction or too large. `nil`: the response has none.
    public var expiresIn: Double?
    /// `refresh_token`; `nil`: the response has none, and the client keeps the old refresh token.
    public var refreshToken: Secret?
    /// Lifetime of the refresh token in seconds; 0: unlimited; `nil`: not stated.
    public var refreshTokenExpiresIn: Double?
    /// `id_token` (OpenID Connect Core section 3.1.3.3), not verified yet.
    public var idToken: Secret?
    /// `scope`, the granted scope; `nil`: the response has none, so the requested scope was granted.
    public var scope: [String]?
    /// Other members. Each access parses their text again, so that secret values don't stay in memory.
    public var extra: [String: JSONValue] {
        get { members.values }
        set { members = SecretMembers(newValue) }
    }
    var members: SecretMembers
    /// The key of the request's DPoP proof.
    @Uncompared var binding: DPoPKey?
    /// Fingerprint of the client certificate of the request's connection, if tokens are bound to certificates.
    @Uncompared var certificate: UInt64?
    /// The server and the client of the request; `nil`: the configuration names both.
    @Uncompared var enrolment: Enrolment?
    /// Latest allowed expiry of the token, even if `expiresIn` is longer; `nil`: no limit.
    @Uncompared var endsAt: ContinuousClock.Instant?
    /// Secrets to hide in the server's texts: those of the request, and the client's secrets at that time.
    @Uncompared var requestSecrets: [Secret] = []

    /// For your own parser. The parameters are the properties of the same names.
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

/// Fault of a token response. The texts are fixed, apart from a printable token type.
public enum TokenResponseError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The body is empty, or only white space.
    case emptyBody
    /// The body is not JSON: RFC 8259.
    case notJSON
    /// The body has another format than JSON.
    case foreign(Format)
    /// The body is not a JSON object. At endpoints other than the token endpoint, also: a required member is missing or
    /// unusable.
    case notAnObject
    /// `access_token` is missing, empty or not a string.
    case noAccessToken
    /// The member that `tokenMember` names is missing, empty or not a string. Value: its name.
    case noMember(String)
    /// `access_token` has bytes that a header field must not have.
    case badAccessToken
    /// `refresh_token` is not a string of printable ASCII.
    case badRefreshToken
    /// `token_type` is missing, and the configuration has no `defaultTokenType`.
    case noTokenType
    /// `token_type` is neither Bearer nor in `treatAsBearer`. Value: the type, printable.
    case unknownTokenType(String)
    /// `token_type` is not DPoP, though the request had a proof (RFC 9449 section 5). The server does not bind tokens.
    case notBound
    /// `token_type` is `N_A`: the issued token is no access token (RFC 8693 section 2.2.1).
    case notAnAccessToken
    /// The token has already expired, by its `expires_in`.
    case alreadyExpired

    /// A format that servers or machines in between send instead of JSON. The raw value names it in a sentence.
    public enum Format: String, Sendable, Hashable {
        /// HTML or XML, from a firewall, a gateway or a login page.
        case webPage = "a web page (HTML or XML)"
        /// Text in UTF-16 with or without a byte order mark; JSON is in UTF-8 (RFC 8259 section 8.1).
        case utf16 = "UTF-16 text"
        /// Bytes of gzip that no field announces (RFC 9110 section 8.4).
        case compressed = "compressed (gzip), without a Content-Encoding field"
    }

    public var description: String {
        switch self {
        case .foreign(let format): "the answer is \(format.rawValue), not JSON in UTF-8"
        case .emptyBody: "the answer is empty"
        case .notJSON: "the answer is not valid JSON"
        case .notAnObject: "the answer is not a JSON object with the required members"
        case .noAccessToken: "the answer has no access_token"
        case .noMember(let name): "the answer has no \(name), which `token_member` names"
        case .badAccessToken: "the access_token has characters that a header field must not have"
        case .badRefreshToken: "the refresh_token is not a string of printable ASCII"
        case .noTokenType: "the answer has no token_type; set default_token_type to accept it"
        case .unknownTokenType(let type): "the token_type is \"\(type)\", not Bearer; list it in treat_as_bearer"
        case .notBound:
            "the token_type is not DPoP: the server does not bind tokens for this client; enable DPoP there, or remove "
                + "dpop here"
        case .notAnAccessToken:
            "the token_type is N_A: the issued token is no access token; set requested_token_type to request one"
        case .alreadyExpired:
            "the token had already expired when it was received; if its expires_in means no end, set token_lifetime: off"
        }
    }
}
