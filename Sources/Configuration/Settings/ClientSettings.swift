import HTTPMessage
import Heimdallr

/// Settings of an OAuth client: those of the library, and others whose values need files, secrets or connections.
@dynamicMemberLookup
public struct ClientSettings: Sendable, Equatable {
    public enum AuthMethod: String, Sendable, Equatable, CaseIterable {
        case clientSecretBasic = "client_secret_basic"
        case clientSecretPost = "client_secret_post"
        case clientSecretJWT = "client_secret_jwt"
        case privateKeyJWT = "private_key_jwt"
        case tlsClientAuth = "tls_client_auth"
        case selfSignedTLSClientAuth = "self_signed_tls_client_auth"
        case none
    }
    /// Use of DPoP (RFC 9449).
    public enum DPoP: Sendable, Equatable {
        case off
        /// A key that the proxy makes, and stores with the tokens.
        case ownKey
        /// - Parameter algorithm: `nil` for the algorithm in the JWK, or for the default of the key's type.
        case key(SecretSource, algorithm: JWTAlgorithm?)
    }

    public var name: String
    public var grantType: GrantType
    /// Settings of the library. Its members are also members of this type.
    public var library = HeimdallrConfiguration()
    public var clientID = ""
    public var clientSecret: SecretSource?
    public var authMethod = AuthMethod.none
    /// Algorithm of `clientKey`; `nil` for the default of the key's type.
    public var authAlgorithm: JWTAlgorithm?
    public var clientKey: SecretSource?
    public var clientKeyID: String?
    /// Path of the certificate of `clientKey`, in PEM.
    public var clientCertificate: String?
    public var clientAssertion: SecretSource?
    /// `client_assertion_type` of `clientAssertion`: a URI, or the end of a URI of RFC 7521, section 8.
    public var clientAssertionType = "jwt-bearer"
    public var clientAssertionAudience = JWTAudience.tokenEndpoint
    /// `typ` of the assertions that the proxy signs.
    public var clientAssertionTyp = "JWT"
    /// Whether connections to this client's upstreams use the certificate of its token requests (RFC 8705 section 3).
    public var certificateBound = false
    public var basicEncoding = BasicEncoding.form
    /// Redirect URI of a login; `nil` for the callback page of the admin port.
    public var redirectURI: String?
    /// Assertion for the grants `jwt-bearer` and `saml2-bearer`.
    public var assertion: AssertionSettings?
    /// Tokens for the grant `token-exchange`.
    public var exchange: ExchangeSettings?
    /// App for the grant `github_app`. The token endpoint follows from these settings.
    public var githubApp: GitHubAppSettings?
    /// Keys or identity for the grant `aws`.
    public var aws: AWSSettings?
    /// User name for the password grant, always set together with `password`; `nil` if a person types both.
    public var username: String?
    public var password: SecretSource?
    public var refreshToken: SecretSource?
    public var http2 = HTTP2Use.never
    public var proxy = NextProxy.none
    public var tls = TLSSettings()
    public var dpop = DPoP.off
    /// Whether programs get this client's tokens themselves, by `heimdallr-proxy token`.
    public var isExportable = false
    /// File for programs that read the token there.
    public var file: TokenFileSettings?
    public var labels: [NameValue] = []
    /// Settings of `client: auto`; `nil` if the configuration names the server and the client.
    public var auto: AutoSettings?

    public init(name: String, grantType: GrantType = .clientCredentials) {
        (self.name, self.grantType) = (name, grantType)
    }

    public subscript<Value>(dynamicMember member: WritableKeyPath<HeimdallrConfiguration, Value>) -> Value {
        get { library[keyPath: member] }
        set { library[keyPath: member] = newValue }
    }

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
        sources += aws?.secrets ?? []
        if case .secret(let subject) = exchange?.subject { sources.append(subject) }
        if case .key(let key, _) = dpop { sources.append(key) }
        return sources.compactMap { $0 }
    }

    /// Whether the proxy signs a client assertion for each request (RFC 7523 section 2.2).
    public var signsClientAssertion: Bool {
        authMethod == .clientSecretJWT || authMethod == .privateKeyJWT && clientAssertion == nil
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
            ("issuer", library.issuer), ("token_endpoint", library.tokenEndpoint),
            ("authorization_endpoint", library.authorizationEndpoint),
            ("device_authorization_endpoint", library.deviceAuthorizationEndpoint),
            ("revocation_endpoint", library.revocationEndpoint),
            ("pushed_authorization_request_endpoint", library.pushedAuthorizationEndpoint),
        ]
        return all.compactMap { name, url in url.map { (name, $0) } }
    }
}
