import CLibcrypto
import WireText

/// The public half of a key in the form of RFC 7517.
public struct PublicJWK: Sendable, Hashable {
    /// The required members in the order of their names (RFC 7638 section 3.2); values are plain ASCII.
    public let members: [JSON.Member]

    /// `{"crv":…}`, without white space.
    public var text: String { JSON.object(members).text(.compact, escaping: .required) }

    /// The thumbprint of RFC 7638, by SHA-256 and in base64url.
    public func thumbprint() throws(CryptographyError) -> String {
        Base64.encode(try Digest.sha256(Array(text.utf8)), alphabet: .url)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(text) }

    /// EVP_PKEY_get_bn_param(3), EVP_PKEY_get_raw_public_key(3).
    init(_ key: OpaquePointer, _ kind: VerificationKey.Kind) throws(CryptographyError) {
        func number(_ name: String, size: Int? = nil) throws(CryptographyError) -> JSON {
            var value: OpaquePointer?
            try Libcrypto.check("EVP_PKEY_get_bn_param", unsafe EVP_PKEY_get_bn_param(key, name, &value))
            defer { unsafe BN_free(value) }
            let bytes = try unsafe Libcrypto.bytes(value, size: size ?? (Int(BN_num_bits(value)) + 7) / 8)
            return .string(Base64.encode(bytes, alphabet: .url))
        }
        switch kind {
        case .rsa:
            members = [.init("e", try number("e")), .init("kty", "RSA"), .init("n", try number("n"))]
        case .elliptic(let curve):
            members = [
                .init("crv", .string(curve.rawValue)), .init("kty", "EC"),
                .init("x", try number("qx", size: curve.size)),
                .init("y", try number("qy", size: curve.size)),
            ]
        case .ed25519:
            var count = 32
            let bytes = try unsafe Libcrypto.output("EVP_PKEY_get_raw_public_key", size: count) {
                unsafe EVP_PKEY_get_raw_public_key(key, $0, &count)
            }
            members = [
                .init("crv", "Ed25519"), .init("kty", "OKP"), .init("x", .string(Base64.encode(bytes, alphabet: .url))),
            ]
        }
    }
}
