import Configuration
import CurlTransport
import Heimdallr
import HeimdallrCurl
import Proxy
import Reactor

struct ClientAssembly {
    let settings: ClientSettings
    let configuration: Configuration
    let secrets: SecretCache
    var material: TLSMaterial?
    var counts: ConnectionCounts?
    var registry = ClientRegistry()

    /// - Parameters:
    ///   - last: notes the URL and the failure of each request.
    ///   - tap: receives a copy of the answers.
    func make(
        on loop: EventLoop, store: any OAuthAccessTokenStore, last: TokenRequestNotes, tap: Tap? = nil,
        onTokenRequest: @escaping @Sendable (TokenRequestReport) -> Void
    ) throws(HeimdallrConfigurationError) -> Heimdallr {
        let http = httpClient(on: loop, last: last)
        return try Heimdallr(
            name: settings.name, configuration: heimdallrConfiguration, credentials: credentials, grant: grant,
            httpClient: NotingHTTPClient(client: http, last: last, tap: tap), store: store,
            onTokenRequest: onTokenRequest)
    }

    func httpClient(on loop: EventLoop, last: TokenRequestNotes) -> any HeimdallrHTTPClient {
        if let auto = settings.auto {
            return Self.enrolling(
                auto, poolOptions, anchors: configuration.trustAnchorsFile,
                privateNetworks: configuration.discoveryNetworks,
                listeners: registry.listeners, on: loop, last: last)
        }
        return CurlHTTPClient(BufferedClient(options: poolOptions, loop: loop)) { last.failed($0) }
    }

    var recordName: String {
        RecordName(
            client: settings.name, configuration: heimdallrConfiguration, credentials: credentials, grant: grant
        ).description
    }

    private var heimdallrConfiguration: HeimdallrConfiguration {
        var configuration = HeimdallrConfiguration()
        if let auto = settings.auto {
            var enrolment = EnrolmentSettings(resource: auto.resource)
            enrolment.issuer = settings.issuer
            enrolment.clientDocument = auto.clientDocument
            enrolment.allowedScopes = auto.allowedScopes
            enrolment.pkce = settings.pkce.flatMap { PKCE(rawValue: $0.rawValue) }
            configuration.enrolment = enrolment
        } else {
            configuration.issuer = settings.issuer
        }
        configuration.tokenEndpoint =
            settings.githubApp.map { GitHubAppGrant.tokenEndpoint(api: $0.api, installation: $0.installation) }
            ?? settings.tokenEndpoint
        configuration.authorizationEndpoint = settings.authorizationEndpoint
        configuration.revocationEndpoint = settings.revocationEndpoint
        configuration.deviceAuthorizationEndpoint = settings.deviceAuthorizationEndpoint
        configuration.pushedAuthorizationEndpoint = settings.pushedAuthorizationEndpoint
        configuration.pushedAuthorization = PushedAuthorization(rawValue: settings.par.rawValue) ?? .auto
        configuration.pkce = settings.pkce.flatMap { PKCE(rawValue: $0.rawValue) }
        configuration.usesIDToken = settings.usesIDToken
        configuration.expectedPersons = settings.expectedPersons
        configuration.tokenMember = settings.tokenMember
        configuration.scope = settings.scope
        configuration.resource = settings.resource
        configuration.audience = settings.audience
        configuration.authorizationDetails = settings.authorizationDetails
        // An extension grant sends its parameters itself.
        if case .extension = settings.grantType {} else { configuration.parameters = parameters }
        for (step, pairs) in settings.stepParams {
            guard let step = RequestStep(rawValue: step.rawValue) else { continue }
            configuration.stepParameters[step] = pairs.map { FormParameter($0.name, $0.value) }
        }
        configuration.refreshesWithScope = settings.refreshScope == .granted
        configuration.headers = settings.headers.map { HeimdallrHTTPField(name: $0.name, value: $0.value) }
        configuration.defaultExpiresIn = settings.defaultExpiresIn?.duration
        configuration.tokenLifetime = settings.tokenLifetime?.duration
        configuration.defaultTokenType = settings.defaultTokenType
        configuration.treatAsBearer = settings.treatAsBearer
        configuration.refreshBefore = settings.refreshBefore
        configuration.timeout = settings.timeout
        switch settings.dpop {
        case .off: break
        case .ownKey: configuration.dpop = .ownKey
        case .key(let key, let algorithm):
            configuration.dpop = .key(
                provider(key), algorithm: algorithm.flatMap { JWTAlgorithm(rawValue: $0.rawValue) })
        }
        configuration.allowDeprecated = settings.allowDeprecated
        configuration.allowPlaintext = settings.allowPlaintext
        configuration.usesMutualTLS =
            settings.authMethod == .tlsClientAuth || settings.authMethod == .selfSignedTLSClientAuth
            || settings.certificateBound
        if settings.certificateBound, let material { configuration.certificate = { material.certificateID } }
        return configuration
    }

    private var parameters: [FormParameter] { settings.params.map { FormParameter($0.name, $0.value) } }

    private var credentials: any OAuthClientCredentials {
        let audience = JWTAudience(settings.clientAssertionAudience)
        if settings.authMethod == .privateKeyJWT, let assertion = settings.clientAssertion {
            return OAuthClientAssertionCredentials(
                identifier: settings.clientID, assertion: secrets.secret(assertion), type: assertionType)
        }
        if settings.authMethod == .privateKeyJWT, let key = settings.clientKey {
            var credentials = OAuthClientAssertionCredentials(
                identifier: settings.clientID, key: secrets.secret(key),
                algorithm: settings.authAlgorithm.flatMap { .init(rawValue: $0.rawValue) },
                keyID: settings.clientKeyID,
                certificate: settings.clientCertificate.map { SecretFileProvider(path: $0) }, audience: audience)
            credentials.typ = settings.clientAssertionTyp
            return credentials
        }
        if settings.authMethod == .clientSecretJWT, let secret = settings.clientSecret {
            var credentials = OAuthClientAssertionCredentials(
                identifier: settings.clientID, secret: secrets.secret(secret), audience: audience)
            credentials.typ = settings.clientAssertionTyp
            return credentials
        }
        guard let secret = settings.clientSecret, settings.authMethod != .none else {
            return settings.clientID.isEmpty
                ? OAuthNoClientCredentials() : OAuthClientSecretCredentials(identifier: settings.clientID)
        }
        let method: OAuthClientSecretCredentials.Method =
            settings.authMethod == .clientSecretPost
            ? .post : .basic(BasicEncoding(rawValue: settings.basicEncoding.rawValue) ?? .form)
        return OAuthClientSecretCredentials(
            identifier: settings.clientID, secret: secrets.secret(secret), method: method)
    }

    private var assertionType: String {
        let type = settings.clientAssertionType
        return type.contains(":") ? type : "urn:ietf:params:oauth:client-assertion-type:" + type
    }

    private var grant: any OAuthAuthorizationGrant {
        switch settings.grantType {
        case .clientCredentials: ClientCredentialsGrant()
        case .password:
            if let username = settings.username {
                PasswordGrant(username: username, password: provider(settings.password))
            } else {
                InteractiveGrant(.password)
            }
        case .refreshToken: RefreshTokenGrant(refreshToken: provider(settings.refreshToken))
        case .jwtBearer where settings.auto?.subjectClient != nil:
            IdentityAssertionGrant { [registry, name = settings.auto?.subjectClient ?? ""] in registry[name] }
        case .jwtBearer: jwtBearer
        case .saml2Bearer: SAML2BearerGrant(assertion: provider(settings.assertion?.secret))
        case .githubApp:
            GitHubAppGrant(
                key: provider(settings.githubApp?.key), repositories: settings.githubApp?.repositories ?? [],
                permissions: Dictionary(
                    (settings.githubApp?.permissions ?? []).map { ($0.name, $0.value) }, uniquingKeysWith: { $1 }))
        case .tokenExchange: tokenExchange
        case .extension(let type): ExtensionGrant(type: type, parameters: parameters)
        case .authorizationCode: InteractiveGrant(.browser)
        case .deviceCode: InteractiveGrant(.device)
        case .implicit: InteractiveGrant(.implicit)
        }
    }

    private var jwtBearer: JWTBearerGrant {
        guard case .signed(let signed) = settings.assertion else {
            return JWTBearerGrant(assertion: provider(settings.assertion?.secret))
        }
        var assertion = SignedAssertion(
            key: secrets.secret(signed.key),
            algorithm: signed.algorithm.flatMap { JWTAlgorithm(rawValue: $0.rawValue) })
        assertion.keyID = signed.keyID
        assertion.issuer = signed.issuer
        assertion.subject = signed.subject
        assertion.audience = JWTAudience(signed.audience)
        assertion.scope = signed.scope
        assertion.claims = signed.claims
        assertion.expiresIn = signed.expiresIn
        return JWTBearerGrant(assertion: assertion)
    }

    private var tokenExchange: TokenExchangeGrant {
        let exchange = settings.exchange
        let type = TokenExchangeGrant.TokenType(rawValue: exchange?.subjectType ?? "")
        let subject: TokenExchangeGrant.Token =
            switch exchange?.subject {
            case .secret(let source): .init(secrets.secret(source), type: type)
            case .caller: .caller(type: type)
            case nil: .init(provider(nil), type: type)
            }
        return TokenExchangeGrant(
            subject: subject,
            actor: exchange?.actor.map { .init(provider($0), type: .init(rawValue: exchange?.actorType ?? "")) },
            requestedTokenType: exchange?.requestedType.map { .init(rawValue: $0) })
    }

    /// Returns the provider of a source. The configuration's checks ensure that a required source is present.
    private func provider(_ source: SecretSource?) -> any SecretProvider {
        source.map { secrets.secret($0) }
            ?? SecretClosureProvider { throw SecretProviderError("no secret is configured") }
    }

    /// Options of connections to the client's servers.
    var poolOptions: PoolOptions {
        // The pool has a connection for each token request that a client may have under way, so no request waits.
        var options = PoolOptions(
            connectTimeout: settings.timeout, maxConnections: TokenRequestLimits().client, settings.tls,
            anchors: configuration.trustAnchorsFile, material)
        options.nextProxy = PoolOptions.NextProxy(settings.proxy)
        options.http2 = PoolOptions.HTTP2(settings.http2)
        options.counts = counts
        return options
    }
}

extension PoolOptions {
    /// Options of connections for requests that the proxy itself makes.
    init(
        connectTimeout: Duration, maxConnections: Int, _ tls: TLSSettings, anchors: String?,
        _ material: TLSMaterial? = nil
    ) {
        self.init()
        self.connectTimeout = connectTimeout
        self.maxConnections = maxConnections
        trustAnchors = TrustAnchors(own: tls.caFile, extra: anchors)
        certificateFile = tls.certFile
        keyFile = tls.keyFile
        self.material = material
    }
}

extension JWTAudience {
    fileprivate init(_ setting: ClientSettings.AssertionAudience) {
        switch setting {
        case .tokenEndpoint: self = .tokenEndpoint
        case .issuer: self = .issuer
        case .text(let text): self = .text(text)
        }
    }
}

extension ClientSettings.Lifetime {
    fileprivate var duration: Duration {
        switch self {
        case .limited(let duration): duration
        case .open: HeimdallrConfiguration.endless
        }
    }
}

extension AssertionSettings {
    /// Source of an assertion that another program makes; `nil` if the proxy signs the assertion.
    fileprivate var secret: SecretSource? {
        if case .secret(let source) = self { source } else { nil }
    }
}
