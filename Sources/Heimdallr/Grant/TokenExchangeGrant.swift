/// Grant that exchanges one token for another: RFC 8693. Each new token needs an exchange, never a refresh token.
public struct TokenExchangeGrant: OAuthAuthorizationGrant {
    /// Type of a token: RFC 8693 section 3, or a URI that the server defines.
    public struct TokenType: RawRepresentable, Sendable, Hashable {
        /// The URI, as it is sent.
        public let rawValue: String

        /// - Parameter rawValue: a URI.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// An OAuth access token.
        public static let accessToken = TokenType(rawValue: "urn:ietf:params:oauth:token-type:access_token")
        /// An OAuth refresh token.
        public static let refreshToken = TokenType(rawValue: "urn:ietf:params:oauth:token-type:refresh_token")
        /// An id token of OpenID Connect.
        public static let idToken = TokenType(rawValue: "urn:ietf:params:oauth:token-type:id_token")
        /// A base64url-encoded SAML 1.1 assertion.
        public static let saml1 = TokenType(rawValue: "urn:ietf:params:oauth:token-type:saml1")
        /// A base64url-encoded SAML 2.0 assertion.
        public static let saml2 = TokenType(rawValue: "urn:ietf:params:oauth:token-type:saml2")
        /// A JWT of any purpose.
        public static let jwt = TokenType(rawValue: "urn:ietf:params:oauth:token-type:jwt")
    }

    /// A token to send, and its type.
    public struct Token: Sendable {
        /// Source of the token; `nil`: each caller sends a token.
        let source: (any SecretProvider)?
        let type: TokenType

        /// The source is read before each token request.
        public init(_ source: any SecretProvider, type: TokenType = .accessToken) {
            self.source = source
            self.type = type
        }

        private init(type: TokenType) {
            source = nil
            self.type = type
        }

        /// Returns a subject without a source: each caller sends a token. See `Heimdallr.client(of:)`.
        public static func caller(type: TokenType = .accessToken) -> Token { Token(type: type) }
    }

    public let type = "urn:ietf:params:oauth:grant-type:token-exchange"
    public let needs = GrantNeeds.nobody
    public let namesIdentityAnew = true
    public let usesRefreshToken = false
    let subject: Token
    let actor: Token?
    let requestedTokenType: TokenType?

    /// - Parameters:
    ///   - subject: the party that the new token is for.
    ///   - actor: the acting party, if it is not the subject.
    ///   - requestedTokenType: type of the new token; `nil`: the server decides.
    public init(subject: Token, actor: Token? = nil, requestedTokenType: TokenType? = nil) {
        self.subject = subject
        self.actor = actor
        self.requestedTokenType = requestedTokenType
    }

    public func parameters() async throws -> [FormParameter] {
        var form = try await Self.form("subject_token", subject)
        if let actor { form += try await Self.form("actor_token", actor) }
        if let requestedTokenType { form.append(FormParameter("requested_token_type", requestedTokenType.rawValue)) }
        return form
    }

    var isOfCallers: Bool { subject.source == nil }

    func exchanging(_ token: any SecretProvider) -> TokenExchangeGrant {
        TokenExchangeGrant(
            subject: Token(token, type: subject.type), actor: actor, requestedTokenType: requestedTokenType)
    }

    private static func form(_ name: String, _ token: Token) async throws -> [FormParameter] {
        guard let source = token.source else {
            throw SecretProviderError("the \(name) comes from a caller, and this request has no caller")
        }
        let secret = try await source.secret().withoutSpaceAround
        guard secret.isVisible else {
            throw SecretProviderError("the \(name) is empty, or contains spaces, line ends or bytes that no token has")
        }
        return [FormParameter(name, secret), FormParameter(name + "_type", token.type.rawValue)]
    }
}
