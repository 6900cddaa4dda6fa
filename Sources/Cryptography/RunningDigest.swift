import CLibcrypto

/// SHA-256 of FIPS 180-4 over bytes that arrive in pieces. Not for concurrent use.
@safe public final class RunningDigest {
    private let context: OpaquePointer

    /// - Throws: `CryptographyError` when libcrypto lacks memory.
    public init() throws(CryptographyError) {
        unsafe context = try unsafe Libcrypto.made("EVP_MD_CTX_new", EVP_MD_CTX_new())
        try Libcrypto.check("EVP_DigestInit_ex", unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil))
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    /// EVP_DigestUpdate(3).
    public func update(_ bytes: Span<UInt8>) throws(CryptographyError) {
        let code = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
        try Libcrypto.check("EVP_DigestUpdate", code)
    }

    /// Returns the digest, 32 bytes. No call may follow.
    public func finish() throws(CryptographyError) -> [UInt8] {
        try unsafe Libcrypto.output("EVP_DigestFinal_ex", size: 32) {
            unsafe EVP_DigestFinal_ex(context, $0, nil)
        }
    }
}
