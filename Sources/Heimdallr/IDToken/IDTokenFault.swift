/// Fault of an id token: OpenID Connect Core section 3.1.3.7. The texts are fixed.
public enum IDTokenFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The answer has no id token, though `openid` was requested and the granted scope does not exclude it.
    case missing
    /// The text is not a signed JSON web token: RFC 7519, RFC 7515.
    case malformed
    /// The signature's algorithm is not accepted, such as `none` or HS256. Value: the algorithm's name.
    case algorithm(String)
    /// The issuer's keys are unavailable.
    case keys(DiscoveryFault)
    /// None of the issuer's keys matches the token's key identifier and algorithm.
    case unknownKey
    /// The signature can't be verified with the issuer's key.
    case signature
    /// `iss` is not the configured issuer.
    case issuer
    /// `aud` does not name this client, or `azp` names another client.
    case audience
    /// `exp` has passed, or is missing.
    case expired
    /// `iat` or `nbf` lies in the future, or `iat` is missing.
    case issuedAt
    /// `exp` has passed by this many seconds.
    case late(seconds: Int64)
    /// `iat` or `nbf` lies this many seconds in the future.
    case early(seconds: Int64)
    /// `nonce` is not the value that this login sent.
    case nonce
    /// `at_hash` belongs to another access token.
    case accessToken
    /// The person is none of `HeimdallrConfiguration.expectedPersons`.
    case person
    /// `sub` is missing, empty, or longer than 255 bytes.
    case subject

    public var description: String {
        switch self {
        case .missing: "the answer has none, though `openid` was requested"
        case .malformed: "it is not a signed JSON web token"
        case .algorithm(let name):
            "its algorithm \(name) is not accepted: have the server sign with RS256, PS256, ES256 or EdDSA"
        case .keys(let fault): "the keys to verify it are unavailable: \(fault)"
        case .unknownKey:
            "none of the server's keys matches it. They are asked for once a minute: if the server has just changed them, "
                + "sign in again in \(IssuerKeys.pause.components.seconds) s"
        case .signature: "its signature is wrong"
        case .issuer: "it comes from another issuer"
        case .audience: "it is meant for another client"
        case .expired: "it has expired: check this machine's clock"
        case .issuedAt: "it was issued in the future: check this machine's clock"
        case .late(let seconds):
            "it has expired \(seconds) s ago by this machine's clock, and \(Claims.leeway) s are tolerated: set the clock"
        case .early(let seconds):
            "it was issued \(seconds) s in the future by this machine's clock, and \(Claims.leeway) s are tolerated: set the "
                + "clock"
        case .nonce: "it belongs to another login"
        case .accessToken: "it belongs to another access token"
        case .person:
            "another person has signed in than `expect` names (a subject, or an address or domain that the server has verified): "
                + "sign in as that person; `params: {prompt: select_account}` lets people choose"
        case .subject: "it does not say who signed in"
        }
    }
}
