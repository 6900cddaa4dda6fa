import CLibcrypto

/// SHA-256 of FIPS 180-4 over bytes that come in pieces. Not for concurrent use.
@safe public final class RunningDigest {
    /// Owned by this object.
    private let context: OpaquePointer

    /// - Throws: `CryptographyError` when libcrypto lacks memory.
    public init() throws(CryptographyError) {
        guard let context = unsafe EVP_MD_CTX_new() else {
            throw .libcrypto(operation: "EVP_MD_CTX_new", messages: [])
        }
        unsafe self.context = context
        try Libcrypto.check("EVP_DigestInit_ex", unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil))
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    /// EVP_DigestUpdate(3).
    public func update(_ bytes: Span<UInt8>) throws(CryptographyError) {
        let code = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
        try Libcrypto.check("EVP_DigestUpdate", code)
    }

    /// Returns the 32 bytes and ends the digest.
    public func finish() throws(CryptographyError) -> [UInt8] {
        var code: Int32 = 0
        let digest = unsafe [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
            unsafe buffer.initialize(repeating: 0)
            var size: UInt32 = 32
            code = unsafe EVP_DigestFinal_ex(context, buffer.baseAddress, &size)
            initialized = 32
        }
        try Libcrypto.check("EVP_DigestFinal_ex", code)
        return digest
    }
}
