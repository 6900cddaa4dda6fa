/// Reason why a key or a certificate can't be used. The message names its source in front of it, and never its content.
public enum KeyFault: Error, Sendable, Hashable, CustomStringConvertible {
    case notAKey
    case encrypted
    case publicOnly
    case certificate
    case kind
    /// Below the minimum of RFC 7518 section 3.3, in bits.
    case tooShort(Int)
    /// Above libcrypto's maximum, in bits.
    case tooLong(Int)
    case inconsistent
    case notForSigning
    /// The wanted algorithm does not fit a key of this kind, which takes others.
    case algorithm(SigningAlgorithm, kind: String, takes: [SigningAlgorithm])
    case otherAlgorithm(SigningAlgorithm, jwk: String)
    case notACertificate
    case foreignCertificate

    public var description: String {
        switch self {
        case .notAKey: "is no private key: write one in PEM (PKCS#8, PKCS#1 or SEC1) or as a JWK"
        case .encrypted: "is locked with a passphrase: write it without one (`openssl pkey -in … -out …`)"
        case .publicOnly: "holds only a public key: the private key is needed"
        case .certificate: "holds a certificate: its private key is needed"
        case .kind: "is of a kind that nothing here signs with: take RSA, P-256, P-384 or Ed25519"
        case .tooShort(let bits): "is an RSA key of \(bits) bits: take one of 2048 at least (RFC 7518 section 3.3)"
        case .tooLong(let bits): "is an RSA key of \(bits) bits: take one of 16384 at most"
        case .inconsistent: "is damaged: its private half does not fit its public one"
        case .notForSigning: "is a JWK that is not for signing (`use` or `key_ops`)"
        case .algorithm(let wanted, let kind, let fitting):
            "is \(kind), which can't sign with \(wanted.rawValue): write "
                + fitting.map(\.rawValue).joined(separator: " or ")
        case .otherAlgorithm(let wanted, let named):
            "is a JWK for \(named) (`alg`), not for \(wanted.rawValue)"
        case .notACertificate: "holds no certificate in PEM"
        case .foreignCertificate: "is the certificate of another key"
        }
    }
}
