import Heimdallr
public import enum WireText.JSONValue

/// An assertion used as a grant (RFC 7521, section 4.1).
public enum AssertionSettings: Sendable, Equatable {
    /// An assertion that another program makes and renews.
    case secret(SecretSource)
    case signed(SignedAssertionSettings)

    /// Source of an assertion that another program makes; `nil` if the proxy signs the assertion.
    var secret: SecretSource? { if case .secret(let source) = self { source } else { nil } }
}

/// A JWT signed by the proxy for each token request (RFC 7523).
public struct SignedAssertionSettings: Sendable, Equatable {
    /// Signing key: PEM, JWK, or the JSON file of a Google service account.
    public var key: SecretSource
    public var keyID: String?
    public var algorithm: JWTAlgorithm?
    public var issuer: String?
    public var subject: String?
    public var audience = JWTAudience.tokenEndpoint
    public var scope: [String] = []
    public var claims: [String: JSONValue] = [:]
    public var expiresIn = Duration.seconds(300)

    func assertion(key: any SecretProvider) -> SignedAssertion {
        var assertion = SignedAssertion(key: key, algorithm: algorithm)
        (assertion.keyID, assertion.issuer, assertion.subject) = (keyID, issuer, subject)
        (assertion.audience, assertion.scope) = (audience, scope)
        (assertion.claims, assertion.expiresIn) = (claims, expiresIn)
        return assertion
    }
}

/// An installation of a GitHub App. The `client_id` of the client is the app's id.
public struct GitHubAppSettings: Sendable, Equatable {
    /// Private key of the app, in PEM.
    public var key: SecretSource
    /// The installation's number.
    public var installation: String
    /// Base URL of GitHub's API.
    public var api = usualAPI
    public var repositories: [String] = []
    public var permissions: [NameValue] = []

    var endpoint: String { GitHubAppGrant.tokenEndpoint(api: api, installation: installation) }

    static let usualAPI = "https://api.github.com"
    static let keys = ["key", "installation", "api", "repositories", "permissions"]

    func grant(_ secret: ClientSettings.GrantType.Secrets) -> GitHubAppGrant {
        GitHubAppGrant(
            key: secret(key), repositories: repositories,
            permissions: Dictionary(permissions.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 }))
    }
}
