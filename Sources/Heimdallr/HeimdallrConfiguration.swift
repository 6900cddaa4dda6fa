internal import HTTPMessage
internal import WireText

/// The settings of one OAuth client. `Heimdallr.init` checks them and throws `HeimdallrConfigurationError`.
public struct HeimdallrConfiguration: Sendable, Equatable {
    /// Issuer identifier of the server, byte for byte. Its metadata supplies endpoints that are not set here (RFC 8414,
    /// OpenID Connect Discovery). An https:// URL without a query, or http:// with `allowPlaintext`.
    public var issuer: String?
    /// Token endpoint (RFC 6749 section 3.2): an https:// URL; http:// with `allowPlaintext`. `nil`: from the metadata.
    public var tokenEndpoint: String?
    /// Revocation endpoint (RFC 7009). `nil`: from the metadata, if any.
    public var revocationEndpoint: String?
    /// Authorization endpoint for browsers (RFC 6749 section 3.1). `nil`: from the metadata.
    public var authorizationEndpoint: String?
    /// Device authorization endpoint (RFC 8628 section 3.1). `nil`: from the metadata.
    public var deviceAuthorizationEndpoint: String?
    /// Endpoint for pushed authorization requests (RFC 9126 section 2). `nil`: from the metadata.
    public var pushedAuthorizationEndpoint: String?
    /// Whether a login's request is pushed to the server before the browser goes there.
    public var pushedAuthorization = PushedAuthorization.auto
    /// Scopes to request (RFC 6749 section 3.3); empty: the server decides. To get the person's name, request `openid`
    /// and set `issuer`.
    public var scope: [String] = []
    /// Use of PKCE in logins at a browser; `nil`: S256, which a server that an API names has to list.
    public var pkce: PKCE?
    /// Whether a login with the scope `openid` sends a `nonce`, and requires and checks an id token. If false, no person's
    /// name is known.
    public var usesIDToken = true
    /// Persons who may log in; empty: everybody. Each is a subject (`sub`), an e-mail address that the server has verified,
    /// or a domain with an `@` before it (`@example.com`): that of a verified address, or Google's `hd`. Another person's
    /// login is refused, and so is one without an id token.
    public var expectedPersons: [String] = []
    /// Path of the member that holds the access token, names with dots between them; `nil`: `access_token`. The token's
    /// type, lifetime, scope and refresh token stand beside it. A refresh without this member has `access_token`.
    public var tokenMember: String?
    /// URIs of the resources that the token is for (RFC 8707). Each becomes a `resource` parameter.
    public var resource: [String] = []
    /// The `audience` parameter, which some servers require instead of `resource`.
    public var audience: String?
    /// Authorization details (RFC 9396): JSON objects with a `type`, at most `maxAuthorizationDetails` bytes in total.
    public var authorizationDetails: [JSONValue] = []
    /// Further form parameters of every token request. `reservedParameters` are not allowed.
    public var parameters: [FormParameter] = []
    /// Parameters of single steps. They replace the step's parameters of the same names, also `scope`, `resource` and
    /// `audience`. A parameter with an empty value is only removed. `reservedParameters` are not allowed.
    public var stepParameters: [RequestStep: [FormParameter]] = [:]
    /// Whether a refresh names the granted scope (RFC 6749 section 6), or else the requested scope.
    public var refreshesWithScope = true
    /// Further header fields of every request to the server. `reservedHeaders` are not allowed.
    public var headers: [HeimdallrHTTPField] = []
    /// Lifetime of a token if its response has no `expires_in`, or `endless`. `nil`: five minutes; `endless` if only a
    /// person's login can bring the next token. A token that is a JWT with an earlier `exp` ends then.
    public var defaultExpiresIn: Duration?
    /// Lifetime of each token, or `endless`, whatever its response says; `nil`: the response decides.
    public var tokenLifetime: Duration?
    /// Lifetime of a token without a known end: it serves until a resource refuses it.
    public static let endless = TokenPolicy.endless
    /// Token type if a response has no `token_type`; `nil`: such a response is an error.
    public var defaultTokenType: String?
    /// Values of `token_type`, besides `Bearer`, that are treated as Bearer. Compared without case.
    public var treatAsBearer: [String] = []
    /// Time before the expiry from which a token is refreshed; half the token's lifetime, if that is shorter.
    public var refreshBefore = Duration.seconds(60)
    /// Time limit of one token request, from connect to the last byte of the response.
    public var timeout = Duration.seconds(10)
    /// Key to which tokens are bound (RFC 9449), so that stolen tokens can't be used; `nil`: Bearer tokens.
    public var dpop: DPoPSetting?
    /// Whether the HTTP client has a client certificate (RFC 8705). If so, `mtls_endpoint_aliases` of the metadata take
    /// precedence.
    public var usesMutualTLS = false
    /// Returns this process's own number for the current client certificate. Tokens are bound to the certificate of
    /// their request (RFC 8705 section 3). `nil`: tokens are not bound.
    @Uncompared package var certificate: (@Sendable () -> UInt64)? = nil
    /// Settings to take issuer, scopes, resource and client from an API's documents. With these settings, leave
    /// `issuer`, the endpoints, `scope` and `resource` empty. `nil`: this configuration names them.
    public var enrolment: EnrolmentSettings?
    /// Whether the password grant and the implicit grant are allowed. RFC 9700 advises against both.
    public var allowDeprecated = false
    /// Whether http:// is allowed for the issuer and the endpoints. If false, http:// is refused even on loopback.
    public var allowPlaintext = false

    /// Makes a configuration for a server with a known token endpoint.
    public init(tokenEndpoint: String) { self.tokenEndpoint = tokenEndpoint }

    /// Makes a configuration for a server that publishes its endpoints.
    public init(issuer: String) { self.issuer = issuer }

    /// Makes a configuration without an issuer and without a token endpoint. Set one of them afterwards.
    public init() {}

    /// Largest size of `authorizationDetails` as JSON, in bytes.
    public static let maxAuthorizationDetails = 16 * 1024

    /// Names that `parameters` can't have, because the protocol sets them.
    public static let reservedParameters: Set<String> = [
        "grant_type", "client_id", "client_secret", "username", "password", "redirect_uri", "code", "assertion",
        "client_assertion", "client_assertion_type", "state", "response_type", "code_verifier", "code_challenge",
        "code_challenge_method", "refresh_token", "nonce", "request", "request_uri", "response_mode", "device_code",
    ]

    /// Names that `headers` can't have, in lower case, because the protocol or HTTP sets them.
    public static let reservedHeaders: Set<String> = [
        "authorization", "proxy-authorization", "host", "content-type", "content-length", "transfer-encoding",
        "connection", "expect", "te", "trailer", "upgrade", "keep-alive", "cookie", "accept-encoding",
    ]

    func validate(grant: any OAuthAuthorizationGrant) throws(HeimdallrConfigurationError) {
        try validateEndpoints(grant.loginMethod)
        if grant.isDeprecated, !allowDeprecated { throw .deprecatedGrant(grant.type) }
        for parameter in parameters + stepParameters.values.joined()
        where Self.reservedParameters.contains(parameter.name) {
            throw .reservedParameter(parameter.name)
        }
        for header in headers {
            guard ASCII.isToken(header.name), ASCII.isFieldValue(header.value, allowingTabs: false) else {
                throw .malformedHeader(header.name)
            }
            guard !Self.reservedHeaders.contains(header.name.lowercased()) else { throw .reservedHeader(header.name) }
        }
        try validateAuthorizationDetails()
        guard defaultExpiresIn ?? .seconds(1) > .zero else { throw .notPositive("defaultExpiresIn") }
        guard tokenLifetime ?? .seconds(1) > .zero else { throw .notPositive("tokenLifetime") }
        guard timeout > .zero else { throw .notPositive("timeout") }
        guard refreshBefore >= .zero else { throw .notPositive("refreshBefore") }
    }
}

extension HeimdallrConfiguration {
    /// Returns the operator's header fields for a server. A configured issuer's fields are for no other server.
    func headers(for issuer: String?) -> [HeimdallrHTTPField] {
        guard let pinned = enrolment?.issuer else { return headers }
        return issuer.map { ServerMetadata.isSame($0, pinned) } ?? false ? headers : []
    }

    /// `authorizationDetails` as it is sent; `nil`: there are none.
    var authorizationDetailsText: String? {
        authorizationDetails.isEmpty ? nil : JSON(.array(authorizationDetails)).text(.compact, escaping: .required)
    }

    private func validateAuthorizationDetails() throws(HeimdallrConfigurationError) {
        for detail in authorizationDetails {
            guard let type = detail["type"]?.string, !type.isEmpty else {
                throw .malformedAuthorizationDetails("each is an object with a type (RFC 9396 section 2)")
            }
        }
        guard (authorizationDetailsText?.utf8.count ?? 0) <= Self.maxAuthorizationDetails else {
            throw .malformedAuthorizationDetails("they are longer than \(Self.maxAuthorizationDetails) bytes")
        }
    }

    private func validateEndpoints(_ method: LoginMethod?) throws(HeimdallrConfigurationError) {
        let endpoints = [
            ("issuer", issuer), ("token endpoint", tokenEndpoint), ("revocation endpoint", revocationEndpoint),
            ("authorization endpoint", authorizationEndpoint),
            ("device authorization endpoint", deviceAuthorizationEndpoint),
            ("pushed authorization request endpoint", pushedAuthorizationEndpoint),
            ("resource", enrolment?.resource), ("issuer", enrolment?.issuer),
            ("client document", enrolment?.clientDocument),
        ]
        for case (let name, let url?) in endpoints {
            // RFC 6749 section 3.2.
            guard let url = try? WebURL(url) else { throw .malformedEndpoint(name) }
            guard allowPlaintext || url.scheme == .https else { throw .plaintextEndpoint(name) }
        }
        guard let issuer = issuer ?? enrolment?.issuer else {
            if enrolment != nil { return }
            // The implicit grant uses no token endpoint.
            guard tokenEndpoint != nil || method == .implicit else { throw .noEndpoint("token endpoint") }
            return
        }
        // RFC 8414 section 2.
        guard !issuer.contains("?") else { throw .malformedEndpoint("issuer") }
    }
}

/// Error in a configuration. The text says what to change.
public enum HeimdallrConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// An address is no absolute http(s) URL, or has user information or a fragment. Value: its name, such as `issuer`.
    case malformedEndpoint(String)
    /// An address is an http:// URL without `allowPlaintext`. Value: its name, such as `token endpoint` or `issuer`.
    case plaintextEndpoint(String)
    /// Neither this endpoint nor an issuer is set. Value: the endpoint's name.
    case noEndpoint(String)
    /// The grant is deprecated by RFC 9700 and needs `allowDeprecated`. Value: its grant type.
    case deprecatedGrant(String)
    /// `parameters` has a name from `reservedParameters`. Value: that name.
    case reservedParameter(String)
    /// `headers` has a name from `reservedHeaders`. Value: that name.
    case reservedHeader(String)
    /// `headers` has a field whose name or value HTTP does not allow (RFC 9110 section 5). Value: its name.
    case malformedHeader(String)
    /// `authorizationDetails` can't be sent. Value: the reason.
    case malformedAuthorizationDetails(String)
    /// A time is too short. Value: the setting's name. Only `refreshBefore` may be zero.
    case notPositive(String)

    public var description: String {
        switch self {
        case .malformedEndpoint(let name):
            "the \(name) must be an absolute https:// URL without user information and fragment"
        case .plaintextEndpoint(let name): "the \(name) over http:// needs allowPlaintext"
        case .noEndpoint(let name): "the \(name) is missing: set it, or an issuer whose metadata names it"
        case .deprecatedGrant(let type): "the grant \(type) is deprecated (RFC 9700) and needs allowDeprecated"
        case .reservedParameter(let name): "the parameter \(name) is set by the protocol: remove it"
        case .reservedHeader(let name): "the header \(name) is set by the protocol: remove it"
        case .malformedHeader(let name): "the header \(name) is not a valid header field"
        case .malformedAuthorizationDetails(let reason): "the authorization details can't be sent: \(reason)"
        case .notPositive(let name): "\(name) must be greater than zero"
        }
    }
}
