import Configuration
import CurlTransport
import Heimdallr
import HeimdallrCurl
import Proxy
import Reactor

/// Makes one OAuth client out of its settings.
struct ClientAssembly {
    private let settings: ClientSettings
    private let trustAnchors: String?

    init(_ settings: ClientSettings, _ configuration: Configuration) {
        self.settings = settings
        trustAnchors = configuration.trustAnchorsFile
    }

    /// - Parameters:
    ///   - loop: where its token requests run.
    ///   - store: where its tokens are kept; one for all clients.
    ///   - last: told where each request goes, and why it failed.
    ///   - onTokenRequest: told of each token request.
    func make(
        on loop: EventLoop, store: any OAuthAccessTokenStore, last: TokenRequestNotes,
        onTokenRequest: @escaping @Sendable (TokenRequestReport) -> Void
    ) throws(HeimdallrConfigurationError) -> Heimdallr {
        try Heimdallr(
            name: settings.name, configuration: heimdallrConfiguration, credentials: credentials, grant: grant,
            httpClient: NotingHTTPClient(
                client: CurlHTTPClient(BufferedClient(options: poolOptions, loop: loop)) { last.failed($0) }, last: last
            ),
            store: store,
            onTokenRequest: onTokenRequest)
    }

    private var heimdallrConfiguration: HeimdallrConfiguration {
        var configuration = HeimdallrConfiguration()
        configuration.issuer = settings.issuer
        configuration.tokenEndpoint = settings.tokenEndpoint
        configuration.authorizationEndpoint = settings.authorizationEndpoint
        configuration.revocationEndpoint = settings.revocationEndpoint
        configuration.deviceAuthorizationEndpoint = settings.deviceAuthorizationEndpoint
        configuration.pushedAuthorizationEndpoint = settings.pushedAuthorizationEndpoint
        configuration.pushedAuthorization = PushedAuthorization(settings.par)
        configuration.scope = settings.scope
        configuration.resource = settings.resource
        configuration.audience = settings.audience
        // A grant of its own kind sends the parameters itself.
        if case .extension = settings.grantType {} else { configuration.parameters = parameters }
        configuration.headers = settings.headers.map { HeimdallrHTTPField(name: $0.name, value: $0.value) }
        configuration.defaultExpiresIn = settings.defaultExpiresIn
        configuration.defaultTokenType = settings.defaultTokenType
        configuration.treatAsBearer = settings.treatAsBearer
        configuration.refreshBefore = settings.refreshBefore
        configuration.timeout = settings.timeout
        configuration.allowDeprecated = settings.allowDeprecated
        configuration.allowPlaintext = settings.allowPlaintext
        return configuration
    }

    private var parameters: [FormParameter] {
        settings.params.map { FormParameter($0.name, $0.value) }
    }

    private var credentials: any OAuthClientCredentials {
        guard let secret = settings.clientSecret, settings.authMethod != .none else {
            return OAuthClientSecretCredentials(identifier: settings.clientID)
        }
        let method: OAuthClientSecretCredentials.Method =
            settings.authMethod == .clientSecretPost ? .post : .basic(BasicEncoding(settings.basicEncoding))
        return OAuthClientSecretCredentials(
            identifier: settings.clientID, secret: secret.provider, method: method)
    }

    private var grant: any OAuthAuthorizationGrant {
        switch settings.grantType {
        case .clientCredentials: ClientCredentialsGrant()
        case .password:
            if let username = settings.username {
                PasswordGrant(username: username, password: settings.password.provider)
            } else {
                InteractiveGrant(.password)
            }
        case .refreshToken: RefreshTokenGrant(refreshToken: settings.refreshToken.provider)
        case .extension(let type): ExtensionGrant(type: type, parameters: parameters)
        case .authorizationCode: InteractiveGrant(.browser)
        case .deviceCode: InteractiveGrant(.device)
        case .implicit: InteractiveGrant(.implicit)
        }
    }

    private var poolOptions: PoolOptions {
        var options = PoolOptions()
        options.connectTimeout = settings.timeout
        options.maxConnections = 4
        options.nextProxy = PoolOptions.NextProxy(settings.proxy)
        options.trustAnchors = PoolOptions.TrustAnchors(own: settings.tls.caFile, extra: trustAnchors)
        options.certificateFile = settings.tls.certFile
        options.keyFile = settings.tls.keyFile
        return options
    }
}

extension SecretSource {
    /// Reads it anew each time it is asked.
    var provider: any SecretProvider {
        switch self {
        case .literal(let text): return Secret(text)
        case .file(let path): return SecretFileProvider(path: path)
        case .environment(let name):
            return SecretClosureProvider {
                guard let value = ProcessEnvironment.value(of: name) else {
                    throw SecretProviderError("the environment variable \(name) is not set")
                }
                return Secret(value)
            }
        }
    }
}

extension Optional<SecretSource> {
    /// Configuration has made sure that it is there where it is needed.
    fileprivate var provider: any SecretProvider {
        self?.provider ?? SecretClosureProvider { throw SecretProviderError("no secret is configured") }
    }
}

extension BasicEncoding {
    fileprivate init(_ setting: ClientSettings.BasicEncoding) {
        switch setting {
        case .form: self = .form
        case .percent: self = .percent
        case .raw: self = .raw
        }
    }
}

extension PushedAuthorization {
    fileprivate init(_ setting: ClientSettings.PushedAuthorization) {
        switch setting {
        case .auto: self = .auto
        case .off: self = .off
        case .required: self = .required
        }
    }
}
