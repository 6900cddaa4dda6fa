/// The token request that a grant is asked to make its part of.
public struct GrantRequest: Sendable {
    /// Where it goes.
    public var tokenEndpoint: String
    /// `HeimdallrConfiguration.issuer`.
    public var issuer: String?
    /// The client's `client_id`; empty: it has none.
    public var client: String

    /// For tests of a grant of your own.
    public init(tokenEndpoint: String, issuer: String? = nil, client: String) {
        self.tokenEndpoint = tokenEndpoint
        self.issuer = issuer
        self.client = client
    }
}

/// A grant whose token request and answer do not have the form of RFC 6749.
protocol OwnRequestGrant: OAuthAuthorizationGrant {
    /// Reads its answers.
    var parser: any OAuthAccessTokenParser { get }

    /// Makes the request, and lists its secrets.
    /// - Throws: any error when a secret is unavailable. The request is not sent.
    func ownRequest(_ request: GrantRequest) async throws -> (message: HeimdallrHTTPRequest, secrets: [Secret])

    /// The fault that the server's answer names.
    func refusal(in body: JSONValue) -> String?
}
