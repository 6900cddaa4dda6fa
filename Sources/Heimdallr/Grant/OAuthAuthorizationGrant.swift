/// Source of a client's first token: RFC 6749 section 1.3. Later ones may come by refresh token.
public protocol OAuthAuthorizationGrant: Sendable {
    /// The value of `grant_type` in the token request.
    var type: String { get }
    /// Requirements for a new token without a usable refresh token.
    var needs: GrantNeeds { get }
    /// Whether RFC 9700 advises against it, so that it needs `allowDeprecated`. `false` by default.
    var isDeprecated: Bool { get }
    /// Whether a refresh token in the server's answer is used for the next token. `true` by default.
    var usesRefreshToken: Bool { get }
    /// How a person signs in to give the client its first token. `nil`, the default: no person is needed.
    var loginMethod: LoginMethod? { get }
    /// The configured account, such as a user name, which the record belongs to. Empty by default.
    var account: String { get }

    /// Form parameters without `grant_type`. Called once for each token request without a refresh token, on any thread.
    /// - Throws: any error when a secret is unavailable. The request is not sent.
    func parameters() async throws -> [FormParameter]

    /// Form parameters for this request. Clients call this function; by default it calls `parameters()`.
    /// - Throws: as `parameters()`.
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
    /// The parameters are the same for each request.
    public func parameters(for request: GrantRequest) async throws -> [FormParameter] { try await parameters() }
}

/// Requirements for a new token when there is no refresh token, or the server refuses it.
public enum GrantNeeds: Sendable, Hashable {
    /// Nothing: the client can ask for another token at any time.
    case nobody
    /// A new refresh token, which an operator configures in place of the old one.
    case freshSeed
    /// A person's login.
    case person
}

/// The client's own authentication is enough: RFC 6749 section 4.4.
public struct ClientCredentialsGrant: OAuthAuthorizationGrant {
    public let type = "client_credentials"
    public let needs = GrantNeeds.nobody

    /// Creates the grant. It has no parameters.
    public init() {}

    public func parameters() -> [FormParameter] { [] }
}

/// Configured user name and password: RFC 6749 section 4.3. Needs `allowDeprecated` (RFC 9700 section 2.4).
public struct PasswordGrant: OAuthAuthorizationGrant {
    public let type = "password"
    public let needs = GrantNeeds.nobody
    public let isDeprecated = true
    public var account: String { username }
    private let username: String
    private let password: any SecretProvider

    /// - Parameter password: asked for before each token request.
    public init(username: String, password: any SecretProvider) {
        self.username = username
        self.password = password
    }

    public func parameters() async throws -> [FormParameter] {
        [FormParameter("username", username), FormParameter("password", try await password.secret())]
    }
}

/// Begins with a configured refresh token: RFC 6749 section 6. A newer one from the server replaces it, in the store.
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

/// Any other grant type with its parameters: RFC 6749 section 4.5.
public struct ExtensionGrant: OAuthAuthorizationGrant {
    public let type: String
    public let needs = GrantNeeds.nobody
    private let fixed: [FormParameter]

    /// - Parameters:
    ///   - type: the grant type's URI.
    ///   - parameters: the grant's form parameters. `grant_type`, `client_id`, `client_secret`, `client_assertion` and
    ///     `client_assertion_type` are left out: they belong to the protocol and to the client's credentials.
    public init(type: String, parameters: [FormParameter]) {
        self.type = type
        self.fixed = parameters.filter { !Self.notTheCallers.contains($0.name) }
    }

    public func parameters() -> [FormParameter] { fixed }

    private static let notTheCallers: Set<String> = [
        "grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type",
    ]
}

/// A person's login brings the first token: see `LoginMethod`. Until then the client sends nothing.
public struct InteractiveGrant: OAuthAuthorizationGrant {
    public let type: String
    public let needs = GrantNeeds.person
    public let isDeprecated: Bool
    public let loginMethod: LoginMethod?

    /// - Parameter method: how the person signs in. `.implicit` and `.password` need `allowDeprecated`.
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
