/// What one OAuth client is told. Checked by `Heimdallr.init`.
public struct HeimdallrConfiguration: Sendable, Equatable {
    /// Absolute; https:// unless `allowPlaintext`.
    public var tokenEndpoint: String
    /// RFC 7009; under the same rules as `tokenEndpoint`. `nil`: tokens can't be revoked.
    public var revocationEndpoint: String?
    public var scope: [String] = []
    /// RFC 8707.
    public var resource: [String] = []
    public var audience: String?
    /// Further form parameters of every token request, whatever the grant.
    public var parameters: [FormParameter] = []
    /// Further header fields of every token request.
    public var headers: [HTTPField] = []
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

    /// Names that extra parameters can't set: they are the protocol's own.
    public static let reservedParameters: Set<String> = [
        "grant_type", "client_id", "client_secret", "username", "password", "redirect_uri", "code", "assertion",
        "client_assertion", "client_assertion_type", "state", "response_type", "code_verifier", "code_challenge",
        "code_challenge_method", "refresh_token",
    ]

    /// Header fields that extra headers can't set, in lower case.
    public static let reservedHeaders: Set<String> = [
        "authorization", "proxy-authorization", "host", "content-type", "content-length", "transfer-encoding",
        "connection", "expect", "te", "trailer", "upgrade", "keep-alive", "cookie", "accept-encoding",
    ]

    func validate(grant: any OAuthAuthorizationGrant) throws(HeimdallrConfigurationError) {
        do {
            try TokenEndpointURL.check(tokenEndpoint, allowPlaintext: allowPlaintext)
        } catch {
            throw error == .plaintext ? .plaintextTokenEndpoint : .malformedTokenEndpoint
        }
        if let revocationEndpoint {
            do {
                try TokenEndpointURL.check(revocationEndpoint, allowPlaintext: allowPlaintext)
            } catch {
                throw error == .plaintext ? .plaintextRevocationEndpoint : .malformedRevocationEndpoint
            }
        }
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

/// A configuration that can't work.
public enum HeimdallrConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    case malformedTokenEndpoint
    case plaintextTokenEndpoint
    case malformedRevocationEndpoint
    case plaintextRevocationEndpoint
    case deprecatedGrant(String)
    case reservedParameter(String)
    case reservedHeader(String)
    case malformedHeader(String)
    case notPositive(String)

    public var description: String {
        switch self {
        case .malformedTokenEndpoint:
            "the token endpoint must be an absolute https:// URL without user information and fragment"
        case .plaintextTokenEndpoint: "a token endpoint over http:// needs allowPlaintext"
        case .malformedRevocationEndpoint:
            "the revocation endpoint must be an absolute https:// URL without user information and fragment"
        case .plaintextRevocationEndpoint: "a revocation endpoint over http:// needs allowPlaintext"
        case .deprecatedGrant(let type): "the grant \(type) is deprecated (RFC 9700) and needs allowDeprecated"
        case .reservedParameter(let name): "the parameter \(name) is the protocol's own and can't be set"
        case .reservedHeader(let name): "the header \(name) is the protocol's own and can't be set"
        case .malformedHeader(let name): "the header \(name) is not a valid header field"
        case .notPositive(let name): "\(name) must be greater than zero"
        }
    }
}
