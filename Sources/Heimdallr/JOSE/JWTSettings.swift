/// Signature algorithm of the proxy's JWTs, by its JOSE name: RFC 7518 section 3.1, RFC 8037 section 3.1.
public enum JWTAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256; for RSA keys.
    case rs256 = "RS256"
    /// RSASSA-PSS with SHA-256; for RSA keys.
    case ps256 = "PS256"
    /// ECDSA with SHA-256; for P-256 keys.
    case es256 = "ES256"
    /// ECDSA with SHA-384; for P-384 keys.
    case es384 = "ES384"
    /// Ed25519.
    case edDSA = "EdDSA"
}

/// Audience (`aud`) of the proxy's assertions. Servers differ.
public enum JWTAudience: Sendable, Hashable {
    /// The token endpoint's URL, whichever endpoint the request goes to.
    case tokenEndpoint
    /// The configured issuer.
    case issuer
    /// This text.
    case text(String)
}
