/// Reason why a key or certificate can't be used. Messages begin with the source of the key, and never show the key.
public enum KeyFault: Error, Sendable, Hashable, CustomStringConvertible {
    case notAKey
    case encrypted
    case publicOnly
    case certificate
    case kind
    /// Size in bits, below the minimum of RFC 7518 section 3.3.
    case tooShort(Int)
    /// Size in bits, above libcrypto's maximum.
    case tooLong(Int)
    case inconsistent
    case notForSigning
    /// A key of this kind can't sign with the wanted algorithm; `takes` lists the algorithms that it can sign with.
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
        case .kind: "is of an unsupported kind: use RSA, P-256, P-384 or Ed25519"
        case .tooShort(let bits): "is an RSA key of \(bits) bits: use at least 2048 bits (RFC 7518 section 3.3)"
        case .tooLong(let bits): "is an RSA key of \(bits) bits: use at most 16384 bits"
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
