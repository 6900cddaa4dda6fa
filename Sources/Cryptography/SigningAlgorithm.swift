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

    /// Returns the algorithms for a key of this kind, the usual algorithm first.
    public static func fitting(_ kind: VerificationKey.Kind) -> [SigningAlgorithm] {
        allCases.filter { $0.signature.keyKind == kind }
    }
}
