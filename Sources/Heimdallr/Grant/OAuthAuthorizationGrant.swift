/// What is shown to the token endpoint to get a first token: RFC 6749 section 1.3.
public protocol OAuthAuthorizationGrant: Sendable {
    /// The value of `grant_type`.
    var type: String { get }
    /// Who has to be there when a new token is wanted and no refresh token helps.
    var needs: GrantNeeds { get }
    /// RFC 9700 says not to use it; then the configuration has to allow it.
    var isDeprecated: Bool { get }
    /// How a person gives the first token, where one is needed.
    var loginMethod: LoginMethod? { get }

    /// The grant's own form parameters, without `grant_type`. Called once for each token request.
    /// - Throws: when a secret can't be had; the request is then not sent.
    func parameters() async throws -> [FormParameter]
}

extension OAuthAuthorizationGrant {
    public var isDeprecated: Bool { false }
    public var loginMethod: LoginMethod? { nil }
}

public enum GrantNeeds: Sendable, Hashable {
    /// It can be repeated at any time.
    case nobody
    /// It spends a refresh token that somebody handed in; when that is refused, another one has to be handed in.
    case freshSeed
    /// Somebody has to log in.
    case person
}

/// RFC 6749 section 4.4.
public struct ClientCredentialsGrant: OAuthAuthorizationGrant {
    public let type = "client_credentials"
    public let needs = GrantNeeds.nobody

    public init() {}

    public func parameters() -> [FormParameter] { [] }
}

/// RFC 6749 section 4.3. RFC 9700 section 2.4 says that it MUST NOT be used: needs `allowDeprecated`.
public struct PasswordGrant: OAuthAuthorizationGrant {
    public let type = "password"
    public let needs = GrantNeeds.nobody
    public let isDeprecated = true
    private let username: String
    private let password: any SecretProvider

    public init(username: String, password: any SecretProvider) {
        self.username = username
        self.password = password
    }

    public func parameters() async throws -> [FormParameter] {
        [FormParameter("username", username), FormParameter("password", try await password.secret())]
    }
}

/// RFC 6749 section 6, begun with a refresh token from elsewhere. Once the server has rotated it, the store's is used.
public struct RefreshTokenGrant: OAuthAuthorizationGrant {
    public let type = "refresh_token"
    public let needs = GrantNeeds.freshSeed
    private let refreshToken: any SecretProvider

    public init(refreshToken: any SecretProvider) {
        self.refreshToken = refreshToken
    }

    public func parameters() async throws -> [FormParameter] {
        [FormParameter("refresh_token", try await refreshToken.secret())]
    }
}

/// RFC 6749 section 4.5: any grant type URI with its parameters. `grant_type` and what authenticates the client are not
/// the caller's to choose: they are taken out of `parameters`.
public struct ExtensionGrant: OAuthAuthorizationGrant {
    public let type: String
    public let needs = GrantNeeds.nobody
    private let fixed: [FormParameter]

    public init(type: String, parameters: [FormParameter]) {
        self.type = type
        self.fixed = parameters.filter { !Self.notTheCallers.contains($0.name) }
    }

    public func parameters() -> [FormParameter] { fixed }

    private static let notTheCallers: Set<String> = [
        "grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type",
    ]
}

/// A grant that begins with a person. Its first token comes in through a login; without a token and without a refresh
/// token it needs that login, and no network call is made.
public struct InteractiveGrant: OAuthAuthorizationGrant {
    public let type: String
    public let needs = GrantNeeds.person
    public let isDeprecated: Bool
    public let loginMethod: LoginMethod?

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
