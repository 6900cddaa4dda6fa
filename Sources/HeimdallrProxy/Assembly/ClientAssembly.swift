import Configuration
import CurlTransport
import HTTPMessage
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
        var configuration = settings.library
        if let auto = settings.auto {
            var enrolment = EnrolmentSettings(resource: auto.resource)
            enrolment.issuer = settings.issuer
            enrolment.clientDocument = auto.clientDocument
            enrolment.allowedScopes = auto.allowedScopes
            enrolment.pkce = settings.pkce
            configuration.enrolment = enrolment
            configuration.issuer = nil
        }
        // An extension grant sends its parameters itself.
        if settings.grantType.isExtension { configuration.parameters = [] }
        switch settings.dpop {
        case .off: break
        case .ownKey: configuration.dpop = .ownKey
        case .key(let key, let algorithm):
            configuration.dpop = .key(secrets.secret(key), algorithm: algorithm)
        }
        configuration.usesMutualTLS =
            settings.authMethod == .tlsClientAuth || settings.authMethod == .selfSignedTLSClientAuth
            || settings.certificateBound
        if settings.certificateBound, let material { configuration.certificate = { material.certificateID } }
        return configuration
    }

    private var credentials: any OAuthClientCredentials {
        let audience = settings.clientAssertionAudience
        if settings.authMethod == .privateKeyJWT, let assertion = settings.clientAssertion {
            return OAuthClientAssertionCredentials(
                identifier: settings.clientID, assertion: secrets.secret(assertion), type: assertionType)
        }
        if settings.authMethod == .privateKeyJWT, let key = settings.clientKey {
            var credentials = OAuthClientAssertionCredentials(
                identifier: settings.clientID, key: secrets.secret(key),
                algorithm: settings.authAlgorithm, keyID: settings.clientKeyID,
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
            settings.authMethod == .clientSecretPost ? .post : .basic(settings.basicEncoding)
        return OAuthClientSecretCredentials(
            identifier: settings.clientID, secret: secrets.secret(secret), method: method)
    }

    private var assertionType: String {
        let type = settings.clientAssertionType
        return type.contains(":") ? type : "urn:ietf:params:oauth:client-assertion-type:" + type
    }

    private var grant: any OAuthAuthorizationGrant {
        settings.grant(secret: provider, client: { [registry] in registry[$0] })
    }

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
        options.nextProxy = settings.proxy
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
