/// Why an id token was refused: OpenID Connect Core section 3.1.3.7. Fixed sentences; an algorithm's name is printable.
public enum IDTokenFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// `openid` was granted, and there is none.
    case missing
    case malformed
    /// `none`, a symmetric one, or one that is not known.
    case algorithm(String)
    /// The issuer's keys could not be had.
    case keys(DiscoveryFault)
    /// None of the issuer's keys fits.
    case unknownKey
    case signature
    case issuer
    case audience
    case expired
    /// Issued in the future, or without saying when.
    case issuedAt
    case nonce
    case subject

    public var description: String {
        switch self {
        case .missing: "there is none, though `openid` was asked for"
        case .malformed: "it is not a signed JSON web token"
        case .algorithm(let name):
            "its algorithm \(name) is not accepted: have the server sign with RS256, PS256, ES256 or EdDSA"
        case .keys(let fault): "the keys to check it with could not be had: \(fault)"
        case .unknownKey: "none of the server's keys fits it"
        case .signature: "its signature is wrong"
        case .issuer: "it comes from another issuer"
        case .audience: "it is meant for another client"
        case .expired: "it has expired: check this machine's clock"
        case .issuedAt: "it was issued in the future: check this machine's clock"
        case .nonce: "it belongs to another login"
        case .subject: "it does not say who signed in"
        }
    }
}
