import CLibcrypto
import WireText

/// A private key for signatures: RSA, P-256, P-384 or Ed25519. Immutable, so safe on any thread. Wiped when its last
/// reference is released.
@safe public final class SigningKey: Sendable, CustomStringConvertible, CustomReflectable {
    public let kind: VerificationKey.Kind
    /// Size of the modulus, or of the curve's field, in bits.
    public let bits: Int
    /// `kid` of the JWK.
    public let identifier: String?
    /// `alg` of the JWK.
    let statedAlgorithm: String?
    public let publicKey: PublicJWK
    /// EVP_PKEY, freed and wiped in `deinit`. It is only read, which libcrypto allows on several threads.
    nonisolated(unsafe) let key: OpaquePointer

    /// Takes ownership of `key`, also if this initializer throws.
    init(
        owning key: OpaquePointer, identifier: String? = nil, statedAlgorithm: String? = nil
    ) throws(CryptographyError) {
        let bits = Int(unsafe EVP_PKEY_get_bits(key))
        let kind: VerificationKey.Kind
        let publicKey: PublicJWK
        do throws(CryptographyError) {
            kind = try unsafe Self.kind(of: key, bits: bits)
            publicKey = try unsafe PublicJWK(key, kind)
            try unsafe Self.checkHalves(of: key)
        } catch {
            // `deinit` does not run after a failed `init`.
            unsafe EVP_PKEY_free(key)
            throw error
        }
        self.kind = kind
        self.bits = bits
        self.publicKey = publicKey
        self.identifier = identifier
        self.statedAlgorithm = statedAlgorithm
        unsafe self.key = unsafe key
    }

    deinit { unsafe EVP_PKEY_free(key) }

    /// Lends the EVP_PKEY for reading. The borrower may keep it by taking a reference with libcrypto.
    @unsafe package func withUnsafeKey<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(key)
    }

    /// Generates a P-256 key. EVP_PKEY_generate(3).
    public static func generate() throws(CryptographyError) -> SigningKey {
        let context = try unsafe Libcrypto.made(
            "EVP_PKEY_CTX_new_from_name", EVP_PKEY_CTX_new_from_name(nil, "EC", nil))
        defer { unsafe EVP_PKEY_CTX_free(context) }
        try Libcrypto.check("EVP_PKEY_keygen_init", unsafe EVP_PKEY_keygen_init(context))
        try Libcrypto.check("EVP_PKEY_CTX_set_group_name", unsafe EVP_PKEY_CTX_set_group_name(context, "P-256"))
        var key: OpaquePointer?
        try Libcrypto.check("EVP_PKEY_generate", unsafe EVP_PKEY_generate(context, &key))
        guard let key = unsafe key else { throw .libcrypto(operation: "EVP_PKEY_generate", messages: []) }
        return try unsafe SigningKey(owning: key)
    }

    /// SubjectPublicKeyInfo of RFC 5280 section 4.1, as DER. i2d_PUBKEY(3).
    func encodedPublicKey() throws(CryptographyError) -> [UInt8] {
        try unsafe Libcrypto.der("i2d_PUBKEY") { unsafe i2d_PUBKEY(key, $0) }
    }

    /// Returns the algorithm for signatures: `wanted`, else the JWK's `alg`, else the usual one for the key's kind.
    /// - Throws: `CryptographyError.key` when `wanted`, the JWK's `alg` and the key do not fit each other.
    public func algorithm(wanted: SigningAlgorithm? = nil) throws(CryptographyError) -> SigningAlgorithm {
        let fitting = SigningAlgorithm.fitting(kind)
        if let wanted {
            guard fitting.contains(wanted) else { throw .key(.algorithm(wanted, kind: description, takes: fitting)) }
            if let statedAlgorithm, !Self.means(statedAlgorithm, wanted) {
                throw .key(.otherAlgorithm(wanted, jwk: "another algorithm"))
            }
            return wanted
        }
        if let statedAlgorithm {
            guard let own = fitting.first(where: { Self.means(statedAlgorithm, $0) }) else {
                throw .key(.notForSigning)
            }
            return own
        }
        guard let usual = fitting.first else { throw .key(.kind) }
        return usual
    }

    /// Whether a JWK's `alg` means the algorithm. RFC 9864 renames EdDSA with the curve Ed25519 to `Ed25519`.
    private static func means(_ name: String, _ algorithm: SigningAlgorithm) -> Bool {
        name == algorithm.rawValue || algorithm == .edDSA && name == "Ed25519"
    }

    /// Signs in the form of JWS. An ECDSA signature is R followed by S (RFC 7518 section 3.4). A PSS salt is as long as
    /// the hash (section 3.5). EVP_DigestSign(3).
    /// - Throws: `CryptographyError.key` for an algorithm that does not fit the key, `.libcrypto` when signing fails.
    public func sign(_ message: [UInt8], by algorithm: SigningAlgorithm) throws(CryptographyError) -> [UInt8] {
        let fitting = SigningAlgorithm.fitting(kind)
        guard fitting.contains(algorithm) else { throw .key(.algorithm(algorithm, kind: description, takes: fitting)) }
        let context = try unsafe Libcrypto.made("EVP_MD_CTX_new", EVP_MD_CTX_new())
        defer { unsafe EVP_MD_CTX_free(context) }
        // Owned by `context`.
        var parameters: OpaquePointer?
        let digest = unsafe algorithm.signature.digest
        try Libcrypto.check("EVP_DigestSignInit", unsafe EVP_DigestSignInit(context, &parameters, digest, nil, key))
        try unsafe algorithm.signature.setPadding(parameters)
        var signature = [UInt8](repeating: 0, count: Int(unsafe EVP_PKEY_get_size(key)))
        var count = signature.count
        let code = unsafe signature.withUnsafeMutableBufferPointer { signature in
            unsafe message.withUnsafeBufferPointer { message in
                unsafe EVP_DigestSign(context, signature.baseAddress, &count, message.baseAddress, message.count)
            }
        }
        try Libcrypto.check("EVP_DigestSign", code)
        signature.removeLast(signature.count - count)
        guard case .elliptic(let curve) = kind else { return signature }
        return try Self.joined(signature, size: curve.size)
    }

    /// Converts an ECDSA-Sig-Value to R and S. d2i_ECDSA_SIG(3), BN_bn2binpad(3).
    private static func joined(_ encoded: [UInt8], size: Int) throws(CryptographyError) -> [UInt8] {
        let parsed = unsafe Libcrypto.parse(encoded) { unsafe d2i_ECDSA_SIG(nil, $0, $1) }
        guard let parsed = unsafe parsed else {
            try Libcrypto.check("d2i_ECDSA_SIG", 0)
            return []
        }
        defer { unsafe ECDSA_SIG_free(parsed) }
        return try unsafe Libcrypto.bytes(ECDSA_SIG_get0_r(parsed), size: size)
            + Libcrypto.bytes(ECDSA_SIG_get0_s(parsed), size: size)
    }

    private static func kind(of key: OpaquePointer, bits: Int) throws(CryptographyError) -> VerificationKey.Kind {
        if unsafe EVP_PKEY_is_a(key, "RSA") == 1 {
            guard bits >= 2048 else { throw .key(.tooShort(bits)) }
            guard bits <= 16384 else { throw .key(.tooLong(bits)) }
            return .rsa
        }
        if unsafe EVP_PKEY_is_a(key, "ED25519") == 1 { return .ed25519 }
        guard unsafe EVP_PKEY_is_a(key, "EC") == 1 else { throw .key(.kind) }
        var count = 0
        let name = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            guard let base = buffer.baseAddress else { return "" }
            return unsafe EVP_PKEY_get_group_name(key, base, buffer.count, &count) == 1
                ? unsafe String(cString: base) : ""
        }
        switch name {
        case "prime256v1", "P-256": return .elliptic(.p256)
        case "secp384r1", "P-384": return .elliptic(.p384)
        default: throw .key(.kind)
        }
    }

    /// Checks the key (EVP_PKEY_pairwise_check(3)), because the first signature of a damaged key would reveal the key.
    private static func checkHalves(of key: OpaquePointer) throws(CryptographyError) {
        let context = try unsafe Libcrypto.made("EVP_PKEY_CTX_new", EVP_PKEY_CTX_new(key, nil))
        defer { unsafe EVP_PKEY_CTX_free(context) }
        guard unsafe EVP_PKEY_pairwise_check(context) == 1 else {
            Libcrypto.forgetErrors()
            throw .key(.inconsistent)
        }
    }

    /// Kind and size of the key: `an RSA key of 2048 bits`.
    public var description: String {
        switch kind {
        case .rsa: "an RSA key of \(bits) bits"
        case .elliptic(let curve): "a \(curve.rawValue) key"
        case .ed25519: "an Ed25519 key"
        }
    }

    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Libcrypto {
    /// Returns the number as `size` bytes, big-endian; empty for `nil`.
    static func bytes(_ number: OpaquePointer?, size: Int) throws(CryptographyError) -> [UInt8] {
        guard let number = unsafe number else { return [] }
        return try unsafe output("BN_bn2binpad", size: size) {
            unsafe BN_bn2binpad(number, $0, Int32(size)) == size ? 1 : 0
        }
    }
}
