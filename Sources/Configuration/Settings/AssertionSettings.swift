public import enum WireText.JSONValue

/// An assertion used as a grant (RFC 7521, section 4.1).
public enum AssertionSettings: Sendable, Equatable {
    /// An assertion that another program makes and renews.
    case secret(SecretSource)
    case signed(SignedAssertionSettings)
}

/// A JWT signed by the proxy for each token request (RFC 7523).
public struct SignedAssertionSettings: Sendable, Equatable {
    /// Signing key: PEM, JWK, or the JSON file of a Google service account.
    public var key: SecretSource
    public var keyID: String?
    public var algorithm: ClientSettings.KeyAlgorithm?
    public var issuer: String?
    public var subject: String?
    public var audience = ClientSettings.AssertionAudience.tokenEndpoint
    public var scope: [String] = []
    public var claims: [String: JSONValue] = [:]
    public var expiresIn = Duration.seconds(300)
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

    static let usualAPI = "https://api.github.com"
}
