/// Source of a client's first token: RFC 6749 section 1.3. Later tokens may come from a refresh token.
public protocol OAuthAuthorizationGrant: Sendable {
    /// The value of `grant_type` in the token request.
    var type: String { get }
    /// Requirements for a new token without a usable refresh token.
    var needs: GrantNeeds { get }
    /// Whether RFC 9700 advises against this grant. It then needs `allowDeprecated`. `false` by default.
    var isDeprecated: Bool { get }
    /// Whether a refresh token in the server's answer is used for the next token. `true` by default.
    var usesRefreshToken: Bool { get }
    /// Method by which a person signs in for the first token; by default `nil`: no person is needed.
    var loginMethod: LoginMethod? { get }
    /// The configured account to which the record belongs, such as a user name. Empty by default.
    var account: String { get }

    /// Whether each token may be for another identity, because an assertion or a token from elsewhere names it. `false` by
    /// default.
    var namesIdentityAnew: Bool { get }

    /// Token request that is no form of RFC 6749, and its answer. `nil` by default.
    var ownRequest: (any OwnTokenRequest)? { get }

    /// Returns form parameters without `grant_type`. Called for each request without a refresh token, on any thread.
    /// - Throws: any error if a secret is unavailable. The request is then not sent.
    func parameters() async throws -> [FormParameter]

    /// Returns the form parameters for this request. Clients call this function. By default it calls `parameters()`.
    /// - Throws: the errors of `parameters()`.
    func parameters(for request: GrantRequest) async throws -> [FormParameter]
}

extension OAuthAuthorizationGrant {
    /// `false`
    public var isDeprecated: Bool { false }
    /// `true`
    public var usesRefreshToken: Bool { true }
    /// `nil`: no person is needed.
    public var loginMethod: LoginMethod? { nil }
    /// Empty: the configuration names no account.
    public var account: String { "" }
    /// `false`
    public var namesIdentityAnew: Bool { false }
    /// `nil`: the request is a form.
    public var ownRequest: (any OwnTokenRequest)? { nil }
    /// Returns `parameters()`.
    public func parameters(for request: GrantRequest) async throws -> [FormParameter] { try await parameters() }
}

/// Token request of a grant whose server takes no form, and the parser of its answer.
public protocol OwnTokenRequest: Sendable {
    /// Reads the server's token. It replaces the client's parser.
    var parser: any OAuthAccessTokenParser { get }

    /// Returns the whole request, which authenticates the client, and the secrets in it.
    /// - Throws: any error if a secret is unavailable. The request is then not sent.
    func message(for request: GrantRequest) async throws -> (message: HeimdallrHTTPRequest, secrets: [Secret])
}

/// Requirements for a new token if there is no refresh token, or the server refuses it.
public enum GrantNeeds: Sendable, Hashable {
    /// Nothing: the client can request a token at any time.
    case nobody
    /// A new refresh token, which an operator has to configure.
    case freshSeed
    /// A person's login.
    case person
}

/// Grant that needs only the client's authentication: RFC 6749 section 4.4.
public struct ClientCredentialsGrant: OAuthAuthorizationGrant {
    public let type = "client_credentials"
    public let needs = GrantNeeds.nobody

    /// Creates the grant. It has no parameters.
    public init() {}

    public func parameters() -> [FormParameter] { [] }
}

/// Grant with user name and password: RFC 6749 section 4.3. Needs `allowDeprecated` (RFC 9700 section 2.4).
public struct PasswordGrant: OAuthAuthorizationGrant {
    public let type = "password"
    public let needs = GrantNeeds.nobody
    public let isDeprecated = true
    public var account: String { username }
    private let username: String
    private let password: any SecretProvider

    /// The password is read before each token request.
    public init(username: String, password: any SecretProvider) {
        self.username = username
        self.password = password
    }

    public func parameters() async throws -> [FormParameter] {
        [FormParameter("username", username), FormParameter("password", try await password.secret())]
    }
}

/// Grant that begins with a configured refresh token: RFC 6749 section 6. The store keeps newer refresh tokens.
public struct RefreshTokenGrant: OAuthAuthorizationGrant {
    public let type = "refresh_token"
    public let needs = GrantNeeds.freshSeed
    private let refreshToken: any SecretProvider

    /// - Parameter refreshToken: source of the first refresh token.
    public init(refreshToken: any SecretProvider) { self.refreshToken = refreshToken }

    public func parameters() async throws -> [FormParameter] {
        [FormParameter("refresh_token", try await refreshToken.secret())]
    }
}

/// Grant of any other type, with its parameters: RFC 6749 section 4.5.
public struct ExtensionGrant: OAuthAuthorizationGrant {
    public let type: String
    public let needs = GrantNeeds.nobody
    private let fixed: [FormParameter]

    /// - Parameters:
    ///   - type: the grant type's URI.
    ///   - parameters: the grant's form parameters. `grant_type`, `client_id`, `client_secret`, `client_assertion` and
    ///     `client_assertion_type` are ignored: they belong to the protocol and to the client's credentials.
    public init(type: String, parameters: [FormParameter]) {
        self.type = type
        self.fixed = parameters.filter { !Self.protocolParameters.contains($0.name) }
    }

    public func parameters() -> [FormParameter] { fixed }

    private static let protocolParameters: Set<String> = [
        "grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type",
    ]
}

/// Grant whose first token comes from a person's login: see `LoginMethod`. Before the login the client sends nothing.
public struct InteractiveGrant: OAuthAuthorizationGrant {
    public let type: String
    public let needs = GrantNeeds.person
    public let isDeprecated: Bool
    public let loginMethod: LoginMethod?

    /// - Parameter method: method of the login. `.implicit` and `.password` need `allowDeprecated`.
    public init(_ method: LoginMethod = .browser) {
        loginMethod = method
        switch method {
        case .browser: (type, isDeprecated) = ("authorization_code", false)
        case .implicit: (type, isDeprecated) = ("implicit", true)
        case .device: (type, isDeprecated) = ("urn:ietf:params:oauth:grant-type:device_code", false)
        case .password: (type, isDeprecated) = ("password", true)
        }
    }

    public func parameters() -> [FormParameter] { [] }
}

/// The token request for which a grant provides its parameters.
public struct GrantRequest: Sendable {
    /// The token endpoint.
    public var tokenEndpoint: String
    /// `HeimdallrConfiguration.issuer`.
    public var issuer: String?
    /// The client's `client_id`; empty: it has none.
    public var client: String
    /// `HeimdallrConfiguration.resource`.
    public var resource: [String] = []
    /// `HeimdallrConfiguration.scope`.
    public var scope: [String] = []

    /// Makes a request for tests of a grant.
    public init(tokenEndpoint: String, issuer: String? = nil, client: String) {
        self.tokenEndpoint = tokenEndpoint
        self.issuer = issuer
        self.client = client
    }
}
