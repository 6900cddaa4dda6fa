/// What one OAuth client is told. Checked by `Heimdallr.init`.
public struct HeimdallrConfiguration: Sendable, Equatable {
    /// Who the authorization server says it is: endpoints that are not named here come from its metadata (RFC 8414,
    /// OpenID Connect Discovery). Under the same rules as `tokenEndpoint`, and without a query.
    public var issuer: String?
    /// Absolute; https:// unless `allowPlaintext`. `nil`: by `issuer`.
    public var tokenEndpoint: String?
    /// RFC 7009; under the same rules as `tokenEndpoint`. Neither here nor by `issuer`: tokens can't be revoked.
    public var revocationEndpoint: String?
    /// Where a person's browser is sent to log in; under the same rules.
    public var authorizationEndpoint: String?
    /// RFC 8628; under the same rules.
    public var deviceAuthorizationEndpoint: String?
    /// RFC 9126; under the same rules.
    public var pushedAuthorizationEndpoint: String?
    /// Whether a login's request is pushed before the browser goes.
    public var pushedAuthorization = PushedAuthorization.auto
    public var scope: [String] = []
    /// RFC 8707.
    public var resource: [String] = []
    public var audience: String?
    /// Further form parameters of every token request, whatever the grant.
    public var parameters: [FormParameter] = []
    /// Further header fields of every token request.
    public var headers: [HeimdallrHTTPField] = []
    /// A token's life when the answer does not say.
    public var defaultExpiresIn = Duration.seconds(300)
    /// `nil`: an answer without token_type is an error.
    public var defaultTokenType: String?
    /// Further values of token_type that mean Bearer.
    public var treatAsBearer: [String] = []
    /// How long before expiry a token is refreshed; capped at half its life.
    public var refreshBefore = Duration.seconds(60)
    /// One token request, from connect to the last byte.
    public var timeout = Duration.seconds(10)
    /// The password grant and others that RFC 9700 advises against.
    public var allowDeprecated = false
    /// http:// token endpoints, on loopback too.
    public var allowPlaintext = false

    public init(tokenEndpoint: String) {
        self.tokenEndpoint = tokenEndpoint
    }

    public init(issuer: String) {
        self.issuer = issuer
    }

    /// Endpoints and issuer are to be set one by one.
    public init() {}

    /// Names that extra parameters can't set: they are the protocol's own.
    public static let reservedParameters: Set<String> = [
        "grant_type", "client_id", "client_secret", "username", "password", "redirect_uri", "code", "assertion",
        "client_assertion", "client_assertion_type", "state", "response_type", "code_verifier", "code_challenge",
        "code_challenge_method", "refresh_token", "nonce", "request", "request_uri", "response_mode", "device_code",
    ]

    /// Header fields that extra headers can't set, in lower case.
    public static let reservedHeaders: Set<String> = [
        "authorization", "proxy-authorization", "host", "content-type", "content-length", "transfer-encoding",
        "connection", "expect", "te", "trailer", "upgrade", "keep-alive", "cookie", "accept-encoding",
    ]

    func validate(grant: any OAuthAuthorizationGrant) throws(HeimdallrConfigurationError) {
        try validateEndpoints(grant.loginMethod)
        if grant.isDeprecated, !allowDeprecated { throw .deprecatedGrant(grant.type) }
        for parameter in parameters where Self.reservedParameters.contains(parameter.name) {
            throw .reservedParameter(parameter.name)
        }
        for header in headers {
            guard ASCII.isToken(header.name), ASCII.isFieldValue(header.value) else {
                throw .malformedHeader(header.name)
            }
            guard !Self.reservedHeaders.contains(header.name.lowercased()) else { throw .reservedHeader(header.name) }
        }
        guard defaultExpiresIn > .zero else { throw .notPositive("defaultExpiresIn") }
        guard timeout > .zero else { throw .notPositive("timeout") }
        guard refreshBefore >= .zero else { throw .notPositive("refreshBefore") }
    }
}

extension HeimdallrConfiguration {
    private func validateEndpoints(_ method: LoginMethod?) throws(HeimdallrConfigurationError) {
        let endpoints = [
            ("issuer", issuer), ("token endpoint", tokenEndpoint), ("revocation endpoint", revocationEndpoint),
            ("authorization endpoint", authorizationEndpoint),
            ("device authorization endpoint", deviceAuthorizationEndpoint),
            ("pushed authorization request endpoint", pushedAuthorizationEndpoint),
        ]
        for case (let name, let url?) in endpoints {
            do {
                try TokenEndpointURL.check(url, allowPlaintext: allowPlaintext)
            } catch {
                throw error == .plaintext ? .plaintextEndpoint(name) : .malformedEndpoint(name)
            }
        }
        guard let issuer else {
            // The implicit grant has none.
            guard tokenEndpoint != nil || method == .implicit else { throw .noEndpoint("token endpoint") }
            return
        }
        // RFC 8414 section 2.
        guard !issuer.contains("?") else { throw .malformedEndpoint("issuer") }
    }
}

/// A configuration that can't work.
public enum HeimdallrConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// By its name: `token endpoint`, `issuer` and so on.
    case malformedEndpoint(String)
    case plaintextEndpoint(String)
    /// Neither it nor an issuer was named.
    case noEndpoint(String)
    case deprecatedGrant(String)
    case reservedParameter(String)
    case reservedHeader(String)
    case malformedHeader(String)
    case notPositive(String)

    public var description: String {
        switch self {
        case .malformedEndpoint(let name):
            "the \(name) must be an absolute https:// URL without user information and fragment"
        case .plaintextEndpoint(let name): "the \(name) over http:// needs allowPlaintext"
        case .noEndpoint(let name): "the \(name) is missing: name it, or an issuer whose metadata does"
        case .deprecatedGrant(let type): "the grant \(type) is deprecated (RFC 9700) and needs allowDeprecated"
        case .reservedParameter(let name): "the parameter \(name) is the protocol's own and can't be set"
        case .reservedHeader(let name): "the header \(name) is the protocol's own and can't be set"
        case .malformedHeader(let name): "the header \(name) is not a valid header field"
        case .notPositive(let name): "\(name) must be greater than zero"
        }
    }
}
