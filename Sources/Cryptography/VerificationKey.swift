import CLibcrypto

/// Algorithms that verify signatures: RFC 7518 section 3.1, RFC 8037.
public enum SignatureAlgorithm: Sendable, Hashable {
    public enum Hash: Sendable, Hashable { case sha256, sha384, sha512 }

    /// RSASSA-PKCS1-v1_5
    case rsa(Hash)
    /// RSASSA-PSS with MGF1 of the same hash and a salt of the hash's length.
    case rsaPSS(Hash)
    /// ECDSA. The signature is R followed by S, each as long as the curve's field.
    case ecdsa(EllipticCurve)
    case ed25519

    public var hash: Hash {
        switch self {
        case .rsa(let hash), .rsaPSS(let hash): hash
        case .ecdsa(let curve): curve.hash
        case .ed25519: .sha512
        }
    }

    public var keyKind: VerificationKey.Kind {
        switch self {
        case .rsa, .rsaPSS: .rsa
        case .ecdsa(let curve): .elliptic(curve)
        case .ed25519: .ed25519
        }
    }

    /// EVP_MD for the message; `nil` for Ed25519, which hashes the message itself.
    var digest: OpaquePointer? { unsafe self == .ed25519 ? nil : hash.digest }

    /// Sets PSS with a salt of the hash's length, if this is RSASSA-PSS. EVP_PKEY_CTX_ctrl(3).
    func setPadding(_ parameters: OpaquePointer?) throws(CryptographyError) {
        guard case .rsaPSS = self else { return }
        try Libcrypto.check(
            "EVP_PKEY_CTX_set_rsa_padding", unsafe EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING))
        try Libcrypto.check(
            "EVP_PKEY_CTX_set_rsa_pss_saltlen",
            unsafe EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST))
    }
}

extension SignatureAlgorithm.Hash {
    var digest: OpaquePointer? {
        switch self {
        case .sha256: unsafe EVP_sha256()
        case .sha384: unsafe EVP_sha384()
        case .sha512: unsafe EVP_sha512()
        }
    }

    /// Size of the hash in bytes.
    var size: Int { Int(unsafe EVP_MD_get_size(digest)) }
}

/// An elliptic curve. The raw value is its name in JOSE.
public enum EllipticCurve: String, Sendable, Hashable {
    case p256 = "P-256"
    case p384 = "P-384"
    case p521 = "P-521"

    /// Size of a coordinate in bytes.
    public var size: Int { facts.size }
    var hash: SignatureAlgorithm.Hash { facts.hash }
    /// Object identifier of X9.62 or SEC 2.
    var identifier: [UInt8] { facts.identifier }

    private var facts: (size: Int, hash: SignatureAlgorithm.Hash, identifier: [UInt8]) {
        switch self {
        case .p256: (32, .sha256, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07])
        case .p384: (48, .sha384, [0x2B, 0x81, 0x04, 0x00, 0x22])
        case .p521: (66, .sha512, [0x2B, 0x81, 0x04, 0x00, 0x23])
        }
    }
}

/// A public key that verifies signatures. Immutable, so safe on any thread.
@safe public final class VerificationKey: Sendable {
    public enum Kind: Sendable, Hashable {
        case rsa
        case elliptic(EllipticCurve)
        case ed25519
    }

    public let kind: Kind
    /// EVP_PKEY, made in `init`, freed in `deinit`, and otherwise only read, which libcrypto allows on several threads.
    private nonisolated(unsafe) let key: OpaquePointer

    /// Makes an RSA key from big-endian numbers. RFC 7518 section 3.3 requires at least 2048 bits.
    /// - Throws: `CryptographyError.libcrypto` for invalid numbers.
    public convenience init(modulus: [UInt8], exponent: [UInt8]) throws(CryptographyError) {
        let modulus = Array(modulus.drop { $0 == 0 })
        let exponent = Array(exponent.drop { $0 == 0 })
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard (2048...16384).contains(bits), (1...8).contains(exponent.count), let last = exponent.last,
            let lowest = modulus.last, last & 1 == 1, lowest & 1 == 1, exponent != [1]
        else { throw .libcrypto(operation: "an RSA key", messages: ["needs 2048 to 16384 bits and an odd exponent"]) }
        try self.init(kind: .rsa, DER.sequence(DER.integer(modulus) + DER.integer(exponent)))
    }

    /// Makes a key from a point on the curve. The coordinates are big-endian and have the curve's size.
    /// - Throws: `CryptographyError.libcrypto` for a point that is not on the curve.
    public convenience init(_ curve: EllipticCurve, x: [UInt8], y: [UInt8]) throws(CryptographyError) {
        guard x.count == curve.size, y.count == curve.size else {
            throw .libcrypto(operation: "an elliptic key", messages: ["has coordinates of another size"])
        }
        try self.init(kind: .elliptic(curve), [0x04] + x + y)
    }

    /// Makes an Ed25519 key (RFC 8032).
    /// - Throws: `CryptographyError.libcrypto` unless there are 32 bytes.
    public convenience init(ed25519 bytes: [UInt8]) throws(CryptographyError) {
        guard bytes.count == 32 else { throw .libcrypto(operation: "an Ed25519 key", messages: ["needs 32 bytes"]) }
        try self.init(kind: .ed25519, bytes)
    }

    /// Makes a key from the parts of a SubjectPublicKeyInfo, RFC 5280 section 4.1. d2i_PUBKEY(3).
    private init(kind: Kind, _ key: [UInt8]) throws(CryptographyError) {
        let encoded = DER.sequence(kind.algorithm + DER.bits(key))
        let parsed = unsafe Libcrypto.parse(encoded) { unsafe d2i_PUBKEY(nil, $0, $1) }
        guard let parsed = unsafe parsed else {
            try Libcrypto.check("d2i_PUBKEY", 0)
            throw .libcrypto(operation: "d2i_PUBKEY", messages: [])
        }
        self.kind = kind
        unsafe self.key = unsafe parsed
    }

    deinit { unsafe EVP_PKEY_free(key) }

    /// Whether this key's private half made `signature` over `message`. A malformed signature, or an algorithm that
    /// does not fit the key, is invalid. EVP_DigestVerify(3).
    public func accepts(
        _ signature: [UInt8], of message: [UInt8], by algorithm: SignatureAlgorithm
    ) throws(CryptographyError) -> Bool {
        guard algorithm.keyKind == kind else { return false }
        var signature = signature
        if case .ecdsa(let curve) = algorithm {
            guard signature.count == curve.size * 2 else { return false }
            // ECDSA-Sig-Value of RFC 3279 section 2.2.3.
            signature = DER.sequence(
                DER.integer(Array(signature[..<curve.size])) + DER.integer(Array(signature[curve.size...])))
        }
        let context = try unsafe Libcrypto.made("EVP_MD_CTX_new", EVP_MD_CTX_new())
        defer { unsafe EVP_MD_CTX_free(context) }
        // Owned by `context`.
        var parameters: OpaquePointer?
        try Libcrypto.check(
            "EVP_DigestVerifyInit", unsafe EVP_DigestVerifyInit(context, &parameters, algorithm.digest, nil, key))
        try unsafe algorithm.setPadding(parameters)
        let code = unsafe signature.withUnsafeBufferPointer { signature in
            unsafe message.withUnsafeBufferPointer { message in
                unsafe EVP_DigestVerify(
                    context, signature.baseAddress, signature.count, message.baseAddress, message.count)
            }
        }
        // 0: the signature is wrong. Negative: the signature is malformed.
        if code != 1 { Libcrypto.forgetErrors() }
        return code == 1
    }
}

extension VerificationKey.Kind {
    /// AlgorithmIdentifier of RFC 5280 section 4.1.1.2, as DER: RFC 3279 section 2.3, RFC 8410 section 3.
    var algorithm: [UInt8] {
        switch self {
        case .rsa:
            DER.sequence(DER.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]) + DER.null)
        case .elliptic(let curve):
            DER.sequence(
                DER.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]) + DER.identifier(curve.identifier))
        case .ed25519: DER.sequence(DER.identifier([0x2B, 0x65, 0x70]))
        }
    }
}
