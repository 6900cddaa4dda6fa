import Heimdallr

extension ClientSettings {
    /// A grant: its rules in the configuration, and the library's grant. A new grant is a type of the library, and a row
    /// of `all`.
    public struct GrantType: Sendable, Equatable, CustomStringConvertible {
        public typealias Secrets = (SecretSource?) -> any SecretProvider
        public typealias Clients = @Sendable (String) -> Heimdallr?

        static let urn = "urn:ietf:params:oauth:grant-type:"

        /// Value of `grant_type` in the configuration.
        let name: String
        /// Whether token requests carry an assertion or token that alone may identify the client. Then `client_id` is
        /// optional (RFC 7521, section 4.1; RFC 8693, section 2.1), and requests have `urn` before the name.
        var carriesAssertion = false
        /// Whether the server has a token endpoint for this grant, at which clients authenticate.
        var hasTokenEndpoint = true
        /// Whether the server knows the client by a `client_id`.
        var hasClientID = true
        /// Token endpoint that follows from the grant's own keys.
        var endpoint: @Sendable (ClientSettings) -> String? = { _ in nil }
        /// Keys that only those grants have that list them.
        var keys: [String] = []
        var required: [String] = []
        var check: @Sendable (ClientReader) -> Void = { _ in }
        let make: @Sendable (ClientSettings, Secrets, @escaping Clients) -> any OAuthAuthorizationGrant

        public static func == (one: Self, other: Self) -> Bool { one.name == other.name }

        /// The `grant_type` of token requests; for a grant that sends none, its name in the configuration.
        public var description: String { (carriesAssertion ? Self.urn : "") + name }

        public var isExtension: Bool { !Self.all.contains(self) }

        /// Whether RFC 9700 advises against the grant.
        var isDeprecated: Bool { ClientSettings(name: "", grantType: self).libraryGrant.isDeprecated }
    }

    /// Makes the library's grant.
    /// - Parameters:
    ///   - secret: returns the provider of a source. The configuration's checks ensure that a required source is present.
    ///   - client: returns the running client of a name.
    public func grant(
        secret: GrantType.Secrets, client: @escaping GrantType.Clients
    ) -> any OAuthAuthorizationGrant { grantType.make(self, secret, client) }

    private var libraryGrant: any OAuthAuthorizationGrant {
        grant(secret: { _ in SecretClosureProvider { throw SecretProviderError("") } }, client: { _ in nil })
    }

    /// Whether a person has to log in to get a token.
    public var needsLogin: Bool { libraryGrant.needs == .person }
}

extension ClientSettings.GrantType {
    /// All grants except extension grants.
    static let all: [Self] = [
        .clientCredentials, .authorizationCode, .deviceCode, .implicit, .password, .refreshToken, .jwtBearer,
        .saml2Bearer, .tokenExchange, .githubApp, .aws,
    ]

    private static let browserKeys = [
        "authorization_endpoint", "redirect_uri", "par", "pushed_authorization_request_endpoint",
    ]
    private static let personKeys = ["id_token", "expect"]

    public static let clientCredentials: Self = .init(name: "client_credentials") { _, _, _ in ClientCredentialsGrant()
    }

    public static let authorizationCode: Self = .init(
        name: "authorization_code", keys: browserKeys + ["pkce"] + personKeys,
        check: { $0.checkLogin(.authorizationCode) }
    ) { _, _, _ in InteractiveGrant(.browser) }

    public static let deviceCode: Self = .init(
        name: "device_code", keys: ["device_authorization_endpoint"] + personKeys, check: { $0.checkLogin(.deviceCode) }
    ) { _, _, _ in InteractiveGrant(.device) }

    public static let implicit: Self = .init(
        name: "implicit", hasTokenEndpoint: false, keys: browserKeys + personKeys, check: { $0.checkLogin(.implicit) }
    ) { _, _, _ in InteractiveGrant(.implicit) }

    public static let password: Self = .init(
        name: "password", keys: ["username", "password"] + personKeys, check: { $0.checkPassword() }
    ) { settings, secret, _ in
        guard let username = settings.username else { return InteractiveGrant(.password) }
        return PasswordGrant(username: username, password: secret(settings.password))
    }

    public static let refreshToken: Self = .init(
        name: "refresh_token", keys: ["refresh_token"], required: ["refresh_token"]
    ) { settings, secret, _ in RefreshTokenGrant(refreshToken: secret(settings.refreshToken)) }

    public static let jwtBearer: Self = .init(
        name: "jwt-bearer", carriesAssertion: true, keys: ["assertion"], required: ["assertion"]
    ) { settings, secret, client in
        if let subject = settings.auto?.subjectClient { return IdentityAssertionGrant { client(subject) } }
        guard case .signed(let signed) = settings.assertion else {
            return JWTBearerGrant(assertion: secret(settings.assertion?.secret))
        }
        return JWTBearerGrant(assertion: signed.assertion(key: secret(signed.key)))
    }

    public static let saml2Bearer: Self = .init(
        name: "saml2-bearer", carriesAssertion: true, keys: ["assertion"], required: ["assertion"],
        check: { $0.refuseSigning() }
    ) { settings, secret, _ in SAML2BearerGrant(assertion: secret(settings.assertion?.secret)) }

    public static let tokenExchange: Self = .init(
        name: "token-exchange", carriesAssertion: true, keys: ClientReader.exchangeKeys, required: ["subject_token"],
        check: { $0.checkExchange() }
    ) { settings, secret, _ in
        settings.exchange?.grant(secret) ?? TokenExchangeGrant(subject: .init(secret(nil)))
    }

    public static let githubApp: Self = .init(
        name: "github_app", hasTokenEndpoint: false, endpoint: { $0.githubApp?.endpoint }, keys: GitHubAppSettings.keys,
        required: ["key", "installation"], check: { $0.checkGitHubApp() }
    ) { settings, secret, _ in settings.githubApp?.grant(secret) ?? GitHubAppGrant(key: secret(nil)) }

    public static let aws: Self = .init(
        name: "aws", hasTokenEndpoint: false, hasClientID: false, endpoint: { $0.aws?.endpoint },
        keys: AWSSettings.keys,
        required: ["region"], check: { $0.checkAWS() }
    ) { settings, secret, _ in
        settings.aws?.grant(secret) ?? AWSGrant(.webIdentity(secret(nil)), region: "")
    }

    /// Any other grant type, by its name or URI (RFC 6749, section 4.5).
    public static func `extension`(_ name: String) -> Self {
        Self(name: name, check: { $0.checkExtension(name) }) { settings, _, _ in
            ExtensionGrant(type: name, parameters: settings.library.parameters)
        }
    }
}
