public import enum WireText.JSONValue

/// An assertion used as a grant: RFC 7521, section 4.1.
public enum AssertionSettings: Sendable, Equatable {
    /// Another program keeps it fresh.
    case secret(SecretSource)
    case signed(SignedAssertionSettings)
}

/// A JWT signed by the proxy for each token request (RFC 7523).
public struct SignedAssertionSettings: Sendable, Equatable {
    /// PEM, JWK, or the JSON file of a Google service account.
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

/// An installation of a GitHub App; the app's id is the client's.
public struct GitHubAppSettings: Sendable, Equatable {
    /// PEM.
    public var key: SecretSource
    /// The installation's number.
    public var installation: String
    /// Base URL of GitHub's API.
    public var api = usualAPI
    public var repositories: [String] = []
    public var permissions: [NameValue] = []

    static let usualAPI = "https://api.github.com"
}
