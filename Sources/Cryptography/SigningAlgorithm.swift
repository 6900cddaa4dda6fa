/// The supported signature algorithms, by the names of RFC 7518 section 3.1 and RFC 8037 section 3.1.
public enum SigningAlgorithm: String, Sendable, Hashable, CaseIterable {
    case rs256 = "RS256"
    case ps256 = "PS256"
    case es256 = "ES256"
    case es384 = "ES384"
    case edDSA = "EdDSA"

    /// The algorithm that verifies such a signature.
    public var signature: SignatureAlgorithm {
        switch self {
        case .rs256: .rsa(.sha256)
        case .ps256: .rsaPSS(.sha256)
        case .es256: .ecdsa(.p256)
        case .es384: .ecdsa(.p384)
        case .edDSA: .ed25519
        }
    }

    /// Algorithms for a key of this kind, the usual one first.
    public static func fitting(_ kind: VerificationKey.Kind) -> [SigningAlgorithm] {
        switch kind {
        case .rsa: [.rs256, .ps256]
        case .elliptic(.p256): [.es256]
        case .elliptic(.p384): [.es384]
        case .elliptic(.p521): []
        case .ed25519: [.edDSA]
        }
    }
}
