internal import Cryptography
internal import WireText

/// Grant for an installation of a GitHub App, at `tokenEndpoint(api:installation:)`. The app authenticates with a JWT.
/// https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app
public struct GitHubAppGrant: OAuthAuthorizationGrant, OwnTokenRequest {
    public let type = "github_app"
    public let needs = GrantNeeds.nobody
    /// This grant.
    public var ownRequest: (any OwnTokenRequest)? { self }
    private let source: any SecretProvider
    private let key: SigningKeySource
    private let repositories: [String]
    private let permissions: [String: String]

    /// - Parameters:
    ///   - key: the app's private key in PEM, read before each request. The `client_id` is the app's id or client id.
    ///   - repositories: names of the token's repositories. Empty: all repositories of the installation.
    ///   - permissions: permissions of the token, such as `contents: read`. Empty: all permissions of the installation.
    public init(key: any SecretProvider, repositories: [String] = [], permissions: [String: String] = [:]) {
        source = key
        self.key = SigningKeySource(key, algorithm: .rs256)
        self.repositories = repositories
        self.permissions = permissions
    }

    /// Returns the URL that issues an installation's tokens.
    /// - Parameters:
    ///   - api: `https://api.github.com`, or `https://HOST/api/v3` for a GitHub Enterprise Server.
    ///   - installation: the installation's number.
    public static func tokenEndpoint(api: String, installation: String) -> String {
        let base = api.hasSuffix("/") ? String(api.dropLast()) : api
        return "\(base)/app/installations/\(installation)/access_tokens"
    }

    /// Returns nothing: the request has no form.
    public func parameters() -> [FormParameter] { [] }

    /// Seconds since `iat`, because GitHub's clock may be behind ours; and until `exp`, for which GitHub allows 600.
    private static let (early, life) = (60, 540)

    /// Parser of GitHub's `token` and `expires_at`.
    public var parser: any OAuthAccessTokenParser { GitHubTokenParser() }

    /// Returns the token request, which is no form, and its secrets.
    /// - Throws: the provider's error, or `SecretProviderError`.
    public func message(for request: GrantRequest) async throws -> (message: HeimdallrHTTPRequest, secrets: [Secret]) {
        let (key, algorithm) = try self.key.current(try await source.secret())
        let now = Int(WallClock.now())
        let assertion: Secret
        do throws(CryptographyError) {
            assertion = try SignedJWT.sign(
                header: [.init("typ", "JWT")],
                claims: [
                    .init("iat", .number(now - Self.early)), .init("exp", .number(now + Self.life)),
                    .init("iss", .string(request.client)),
                ], with: .key(key, algorithm))
        } catch {
            throw SecretProviderError("the app's JWT could not be signed: \(error)")
        }
        let message = HeimdallrHTTPRequest(
            method: "POST", url: request.tokenEndpoint,
            headers: [
                HeimdallrHTTPField(name: "Authorization", secret: Secret("Bearer ", before: assertion.bytes)),
                HeimdallrHTTPField(name: "Accept", value: "application/vnd.github+json"),
                HeimdallrHTTPField(name: "Content-Type", value: "application/json"),
            ], body: Array(body.utf8))
        return (message, [assertion])
    }

    private var body: String {
        var members: [JSON.Member] = []
        if !repositories.isEmpty { members.append(.init("repositories", JSON(repositories))) }
        if !permissions.isEmpty {
            let sorted = permissions.sorted { $0.key < $1.key }
            members.append(.init("permissions", .object(sorted.map { .init($0.key, .string($0.value)) })))
        }
        return JSON.object(members).text(.compact, escaping: .required)
    }
}

/// Reads `{"token": …, "expires_at": …}`. Other members are dropped.
private struct GitHubTokenParser: OAuthAccessTokenParser {
    /// Longest lifetime in seconds. GitHub's tokens live for an hour, but seem to live longer if our clock is behind.
    private static let longest = 3600.0

    func parse(_ body: [UInt8]) throws(TokenResponseError) -> TokenResponse { try parse(Secret(body)) }

    func parse(_ content: Secret) throws(TokenResponseError) -> TokenResponse {
        guard !content.isEmpty else { throw .emptyBody }
        let value: JSONValue
        do { value = try content.withSpan { try JSONParser.parse($0) } } catch { throw .notJSON }
        guard case .object = value else { throw .notAnObject }
        guard let token = value["token"]?.string, !token.isEmpty else { throw .noAccessToken }
        var response = TokenResponse(accessToken: Secret(token), tokenType: "Bearer")
        if let end = value["expires_at"]?.string.flatMap({ RFC3339.seconds($0) }) {
            response.expiresIn = min(Double(Int64(end) - WallClock.now()), Self.longest)
        }
        return response
    }
}
