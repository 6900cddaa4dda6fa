public import enum WireText.JSONValue

/// Settings of an OAuth client.
public struct ClientSettings: Sendable, Equatable {
    public enum GrantType: Sendable, Equatable {
        case clientCredentials, password, refreshToken, authorizationCode, implicit, deviceCode
        case jwtBearer, saml2Bearer, tokenExchange, githubApp
        /// Any other grant type, by its name or URI (RFC 6749, section 4.5).
        case `extension`(String)
    }
    public enum AuthMethod: String, Sendable, Equatable, CaseIterable {
        case clientSecretBasic = "client_secret_basic"
        case clientSecretPost = "client_secret_post"
        case clientSecretJWT = "client_secret_jwt"
        case privateKeyJWT = "private_key_jwt"
        case tlsClientAuth = "tls_client_auth"
        case selfSignedTLSClientAuth = "self_signed_tls_client_auth"
        case none
    }
    /// Algorithms of a key (RFC 7518, section 3.1; RFC 8037).
    public enum KeyAlgorithm: String, Sendable, Equatable, CaseIterable {
        case rs256 = "RS256"
        case ps256 = "PS256"
        case es256 = "ES256"
        case es384 = "ES384"
        case edDSA = "EdDSA"
    }
    /// Algorithms of a client assertion. HS256 is only for `client_secret_jwt`.
    public enum AuthAlgorithm: String, Sendable, Equatable, CaseIterable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case ps256 = "PS256"
        case es256 = "ES256"
        case es384 = "ES384"
        case edDSA = "EdDSA"
    }
    /// Audience of an assertion.
    public enum AssertionAudience: Sendable, Equatable {
        case tokenEndpoint, issuer
        case text(String)
    }
    public enum BasicEncoding: String, Sendable, Equatable, CaseIterable { case form, percent, raw }
    /// Use of DPoP (RFC 9449).
    public enum DPoP: Sendable, Equatable {
        case off
        /// A key that the proxy makes, and stores with the tokens.
        case ownKey
        /// - Parameter algorithm: `nil` for the algorithm in the JWK, or for the default of the key's type.
        case key(SecretSource, algorithm: KeyAlgorithm?)
    }
    /// Steps whose requests may have parameters of their own.
    public enum Step: String, Sendable, Equatable, CaseIterable {
        case signIn = "sign_in"
        case token, refresh, exchange
    }
    /// Scope of a refresh.
    public enum RefreshScope: String, Sendable, Equatable, CaseIterable { case granted, none }
    /// Lifetime of a token.
    public enum Lifetime: Sendable, Equatable {
        case limited(Duration)
        /// No end is known. The token serves until an API refuses it.
        case open
    }
    /// Use of pushed authorization requests (RFC 9126).
    public enum PushedAuthorization: String, Sendable, Equatable, CaseIterable { case auto, off, required }
    /// Use of PKCE (RFC 7636).
    public enum PKCE: String, Sendable, Equatable, CaseIterable {
        case s256 = "S256"
        case off
    }

    public var name: String
    public var grantType = GrantType.clientCredentials
    /// Issuer, whose metadata gives all endpoints that are `nil`.
    public var issuer: String?
    public var tokenEndpoint: String?
    public var authorizationEndpoint: String?
    public var revocationEndpoint: String?
    public var deviceAuthorizationEndpoint: String?
    public var pushedAuthorizationEndpoint: String?
    public var par = PushedAuthorization.auto
    /// `nil`: S256, which a server that an API names has to list.
    public var pkce: PKCE?
    public var usesIDToken = true
    /// Persons who may sign in; empty: everybody.
    public var expectedPersons: [String] = []
    /// Path of the member that holds the token; `nil` for `access_token`.
    public var tokenMember: String?
    public var clientID = ""
    public var clientSecret: SecretSource?
    public var authMethod = AuthMethod.none
    public var authAlgorithm: AuthAlgorithm?
    public var clientKey: SecretSource?
    public var clientKeyID: String?
    /// Path of the certificate of `clientKey`, in PEM.
    public var clientCertificate: String?
    public var clientAssertion: SecretSource?
    /// `client_assertion_type` of `clientAssertion`: a URI, or the end of a URI of RFC 7521, section 8.
    public var clientAssertionType = "jwt-bearer"
    public var clientAssertionAudience = AssertionAudience.tokenEndpoint
    /// `typ` of the assertions that the proxy signs.
    public var clientAssertionTyp = "JWT"
    /// Whether connections to this client's upstreams use the certificate of its token requests (RFC 8705 section 3).
    public var certificateBound = false
    public var basicEncoding = BasicEncoding.form
    public var treatAsBearer: [String] = []
    /// Redirect URI of a login; `nil` for the callback page of the admin port.
    public var redirectURI: String?
    public var scope: [String] = []
    public var resource: [String] = []
    public var audience: String?
    /// Objects with a `type` (RFC 9396).
    public var authorizationDetails: [JSONValue] = []
    /// Assertion for the grants `jwt-bearer` and `saml2-bearer`.
    public var assertion: AssertionSettings?
    /// Tokens for the grant `token-exchange`.
    public var exchange: ExchangeSettings?
    /// App for the grant `github_app`. The token endpoint follows from these settings.
    public var githubApp: GitHubAppSettings?
    /// Additional parameters of token requests, in the order of the file.
    public var params: [NameValue] = []
    /// Parameters of single steps, in place of the others of their names.
    public var stepParams: [Step: [NameValue]] = [:]
    public var refreshScope = RefreshScope.granted
    public var headers: [NameValue] = []
    /// User name for the password grant, always set together with `password`; `nil` if a person types both.
    public var username: String?
    public var password: SecretSource?
    public var refreshToken: SecretSource?
    /// Lifetime of a token whose answer has none; `nil`: five minutes, or open if only a person brings the next token.
    public var defaultExpiresIn: Lifetime?
    /// Lifetime of each token in place of the server's; `nil`: the server's.
    public var tokenLifetime: Lifetime?
    public var defaultTokenType: String?
    public var refreshBefore = Duration.seconds(60)
    public var timeout = Duration.seconds(10)
    public var http2 = HTTP2Use.never
    public var proxy = NextProxy.none
    public var tls = TLSSettings()
    public var dpop = DPoP.off
    public var allowDeprecated = false
    public var allowPlaintext = false
    public var labels: [NameValue] = []
    /// Settings of `client: auto`; `nil` if the configuration names the server and the client.
    public var auto: AutoSettings?

    public init(name: String) { self.name = name }

    /// Sources of secrets other than `clientAssertion`. `clientKey` is among them only for `client: auto`.
    public var secrets: [SecretSource] {
        var sources = [
            clientSecret, auto == nil ? nil : clientKey, password, refreshToken, exchange?.actor, githubApp?.key,
        ]
        switch assertion {
        case .secret(let source): sources.append(source)
        case .signed(let settings): sources.append(settings.key)
        case nil: break
        }
        if case .secret(let subject) = exchange?.subject { sources.append(subject) }
        if case .key(let key, _) = dpop { sources.append(key) }
        return sources.compactMap { $0 }
    }

    /// Whether the proxy signs a client assertion for each request (RFC 7523 section 2.2).
    public var signsClientAssertion: Bool {
        authMethod == .clientSecretJWT || authMethod == .privateKeyJWT && clientAssertion == nil
    }

    /// Whether a person has to log in to get a token.
    public var needsLogin: Bool {
        switch grantType {
        case .authorizationCode, .implicit, .deviceCode: true
        case .password: username == nil
        case .clientCredentials, .refreshToken, .jwtBearer, .saml2Bearer, .tokenExchange, .githubApp, .extension: false
        }
    }
}

public struct NameValue: Sendable, Equatable {
    public var name: String
    public var value: String
}

extension ClientSettings {
    /// URLs of the authorization server in the configuration, by their keys.
    public var endpoints: [(name: String, url: String)] {
        let all = [
            ("issuer", issuer), ("token_endpoint", tokenEndpoint), ("authorization_endpoint", authorizationEndpoint),
            ("device_authorization_endpoint", deviceAuthorizationEndpoint),
            ("revocation_endpoint", revocationEndpoint),
            ("pushed_authorization_request_endpoint", pushedAuthorizationEndpoint),
        ]
        return all.compactMap { name, url in url.map { (name, $0) } }
    }
}
