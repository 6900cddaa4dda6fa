internal import Cryptography
internal import WireText

/// Tokens of an installation of a GitHub App, from `tokenEndpoint(api:installation:)`. The app authenticates by a JWT.
/// https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app
public struct GitHubAppGrant: OAuthAuthorizationGrant {
    public let type = "github_app"
    public let needs = GrantNeeds.nobody
    private let source: any SecretProvider
    private let key: SigningKeySource
    private let repositories: [String]
    private let permissions: [String: String]

    /// - Parameters:
    ///   - key: the app's private key, PEM; asked before each request. The app's id, or its client id, is the client's.
    ///   - repositories: names of those that the token is for. Empty: all that the installation has.
    ///   - permissions: what the token may do, such as `contents: read`. Empty: all that the installation may.
    public init(key: any SecretProvider, repositories: [String] = [], permissions: [String: String] = [:]) {
        source = key
        self.key = SigningKeySource(key, algorithm: .rs256)
        self.repositories = repositories
        self.permissions = permissions
    }

    /// Where an installation's tokens come from.
    /// - Parameters:
    ///   - api: `https://api.github.com`, or `https://HOST/api/v3` of a GitHub of one's own.
    ///   - installation: the installation's number.
    public static func tokenEndpoint(api: String, installation: String) -> String {
        let base = api.hasSuffix("/") ? String(api.dropLast()) : api
        return "\(base)/app/installations/\(installation)/access_tokens"
    }

    /// It has no form.
    public func parameters() -> [FormParameter] { [] }

    /// GitHub's clock may be behind ours, and takes ten minutes at most.
    private static let (early, life) = (60, 540)

    var parser: any OAuthAccessTokenParser { GitHubTokenParser() }

    /// Makes the token request, which is no form (RFC 6749), and lists its secrets.
    /// - Throws: what the provider throws, or `SecretProviderError`.
    func ownRequest(_ request: GrantRequest) async throws -> (message: HeimdallrHTTPRequest, secrets: [Secret]) {
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
                // GitHub refuses requests without one.
                HeimdallrHTTPField(name: "User-Agent", value: "heimdallr-proxy"),
            ], body: Array(body.utf8))
        return (message, [assertion])
    }

    private var body: String {
        var members: [JSON.Member] = []
        if !repositories.isEmpty { members.append(.init("repositories", .array(repositories.map { .string($0) }))) }
        if !permissions.isEmpty {
            let sorted = permissions.sorted { $0.key < $1.key }
            members.append(.init("permissions", .object(sorted.map { .init($0.key, .string($0.value)) })))
        }
        return JSON.object(members).text(.compact, escaping: .required)
    }

    /// The fault that GitHub's answer names.
    static func refusal(in body: JSONValue) -> String? { body["message"]?.string }
}

/// `{"token": …, "expires_at": …}`. Of the rest nothing is kept.
private struct GitHubTokenParser: OAuthAccessTokenParser {
    /// GitHub's tokens live for an hour, whatever our clock makes of it.
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
