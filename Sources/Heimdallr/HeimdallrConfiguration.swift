internal import WireText

/// The settings of one OAuth client. `Heimdallr.init` checks them and throws `HeimdallrConfigurationError`.
public struct HeimdallrConfiguration: Sendable {
    /// Issuer identifier of the server, byte for byte. Its metadata has the endpoints that are not set here (RFC 8414, OpenID
    /// Connect Discovery). An https:// URL without a query; http:// with `allowPlaintext`.
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
    /// Scopes to ask for (RFC 6749 section 3.3). Empty: the server decides. `openid` with an `issuer` names the person.
    public var scope: [String] = []
    /// The URIs of the resources that the token is for: one `resource` parameter each (RFC 8707).
    public var resource: [String] = []
    /// The `audience` parameter, which some servers want in place of `resource`.
    public var audience: String?
    /// Permissions (RFC 9396): JSON objects with a `type`, at most `maxAuthorizationDetails` bytes in all.
    public var authorizationDetails: [JSONValue] = []
    /// Further form parameters of every token request, whatever the grant. None of `reservedParameters`.
    public var parameters: [FormParameter] = []
    /// Further header fields of every token request. None of `reservedHeaders`.
    public var headers: [HeimdallrHTTPField] = []
    /// Lifetime of a token whose answer has no `expires_in`.
    public var defaultExpiresIn = Duration.seconds(300)
    /// The token type of an answer that has no `token_type`. `nil`: such an answer is an error.
    public var defaultTokenType: String?
    /// Values of `token_type` that mean Bearer, besides `Bearer` itself; compared without case.
    public var treatAsBearer: [String] = []
    /// Time before its expiry at which a token is refreshed; at most half of its lifetime.
    public var refreshBefore = Duration.seconds(60)
    /// Limit of one token request's time, from connect to the last byte of the answer.
    public var timeout = Duration.seconds(10)
    /// Binds tokens to a key (RFC 9449), so that a thief can't use them. `nil`: Bearer tokens.
    public var dpop: DPoPSetting?
    /// Whether the client uses a certificate (RFC 8705): `mtls_endpoint_aliases` of the metadata then come first. The HTTP
    /// client has the certificate.
    public var usesMutualTLS = false
    /// Returns the number of the present client certificate. Tokens are bound to the certificate of their request (RFC 8705
    /// section 3). `nil`: tokens are not bound.
    package var certificate: (@Sendable () -> UInt64)?
    /// Takes the issuer, the scopes, the resource and the client from the documents of an API. Then leave `issuer`, the
    /// endpoints, `scope` and `resource` empty. `nil`: the configuration has them.
    public var enrolment: EnrolmentSettings?
    /// Allows the password grant and the implicit grant, which RFC 9700 advises against.
    public var allowDeprecated = false
    /// Allows http:// for the issuer and the endpoints; without it not even loopback is allowed.
    public var allowPlaintext = false

    /// For a server whose token endpoint is known.
    public init(tokenEndpoint: String) { self.tokenEndpoint = tokenEndpoint }

    /// For a server that publishes its endpoints.
    public init(issuer: String) { self.issuer = issuer }

    /// Without an issuer or an endpoint; set one of them afterwards.
    public init() {}

    /// Maximum size of `authorizationDetails` as JSON, in bytes.
    public static let maxAuthorizationDetails = 16 * 1024

    /// Names that `parameters` can't have, because the protocol sets them.
    public static let reservedParameters: Set<String> = [
        "grant_type", "client_id", "client_secret", "username", "password", "redirect_uri", "code", "assertion",
        "client_assertion", "client_assertion_type", "state", "response_type", "code_verifier", "code_challenge",
        "code_challenge_method", "refresh_token", "nonce", "request", "request_uri", "response_mode", "device_code",
    ]

    /// Names that `headers` can't have, in lower case: the protocol or HTTP sets them.
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
            guard ASCII.isToken(header.name), ASCII.isFieldValue(header.value, allowingTabs: false) else {
                throw .malformedHeader(header.name)
            }
            guard !Self.reservedHeaders.contains(header.name.lowercased()) else { throw .reservedHeader(header.name) }
        }
        try validateAuthorizationDetails()
        guard defaultExpiresIn > .zero else { throw .notPositive("defaultExpiresIn") }
        guard timeout > .zero else { throw .notPositive("timeout") }
        guard refreshBefore >= .zero else { throw .notPositive("refreshBefore") }
    }
}

extension HeimdallrConfiguration {
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
            do {
                try TokenEndpointURL.check(url, allowPlaintext: allowPlaintext)
            } catch { throw error == .plaintext ? .plaintextEndpoint(name) : .malformedEndpoint(name) }
        }
        guard let issuer = issuer ?? enrolment?.issuer else {
            if enrolment != nil { return }
            // The implicit grant has none.
            guard tokenEndpoint != nil || method == .implicit else { throw .noEndpoint("token endpoint") }
            return
        }
        // RFC 8414 section 2.
        guard !issuer.contains("?") else { throw .malformedEndpoint("issuer") }
    }
}

/// Error in a configuration. The text says what to do.
public enum HeimdallrConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// No absolute http(s) URL, or one with user information or a fragment: its name, such as `issuer`.
    case malformedEndpoint(String)
    /// An http:// URL without `allowPlaintext`: the name, such as `token endpoint` or `issuer`.
    case plaintextEndpoint(String)
    /// Neither this endpoint nor an issuer is set: the endpoint's name.
    case noEndpoint(String)
    /// A grant that RFC 9700 advises against, without `allowDeprecated`: its grant type.
    case deprecatedGrant(String)
    /// `parameters` has a name out of `reservedParameters`: that name.
    case reservedParameter(String)
    /// `headers` has a name out of `reservedHeaders`: that name.
    case reservedHeader(String)
    /// `headers` has a field whose name or value HTTP does not allow (RFC 9110 section 5): its name.
    case malformedHeader(String)
    /// `authorizationDetails` can't be sent: why.
    case malformedAuthorizationDetails(String)
    /// A time that is too short: the setting's name. Only `refreshBefore` may be zero.
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
        case .malformedAuthorizationDetails(let reason): "the authorization details can't be sent: \(reason)"
        case .notPositive(let name): "\(name) must be greater than zero"
        }
    }
}
