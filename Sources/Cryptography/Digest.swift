import CLibcrypto

/// Digests, plain and with a key.
public enum Digest {
    /// SHA-256 of FIPS 180-4, 32 bytes. EVP_Digest(3).
    public static func sha256(_ bytes: [UInt8]) throws(CryptographyError) -> [UInt8] {
        var result = Result<[UInt8], CryptographyError>.success([])
        unsafe bytes.withUnsafeBytes { bytes in
            do throws(CryptographyError) { result = .success(try unsafe sha256(bytes)) } catch {
                result = .failure(error)
            }
        }
        return try result.get()
    }

    /// SHA-256 of a secret, without leaving a copy.
    public static func sha256(_ bytes: SecretBytes) throws(CryptographyError) -> [UInt8] {
        try unsafe bytes.withUnsafeBytes { bytes throws(CryptographyError) in try unsafe sha256(bytes) }
    }

    private static func sha256(_ input: UnsafeRawBufferPointer) throws(CryptographyError) -> [UInt8] {
        var code: Int32 = 0
        let digest = unsafe [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
            unsafe buffer.initialize(repeating: 0)
            var size: UInt32 = 32
            code = unsafe EVP_Digest(input.baseAddress, input.count, buffer.baseAddress, &size, EVP_sha256(), nil)
            initialized = 32
        }
        try Libcrypto.check("EVP_Digest", code)
        return digest
    }

    /// SHA-2 of a secret. EVP_Digest(3).
    public static func sha(
        _ hash: SignatureAlgorithm.Hash, of secret: SecretBytes
    ) throws(CryptographyError) -> [UInt8] {
        let (algorithm, length) =
            switch hash {
            case .sha256: unsafe (EVP_sha256(), 32)
            case .sha384: unsafe (EVP_sha384(), 48)
            case .sha512: unsafe (EVP_sha512(), 64)
            }
        var code: Int32 = 0
        let digest = unsafe [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
            unsafe buffer.initialize(repeating: 0)
            var size = UInt32(length)
            code = unsafe secret.withUnsafeBytes { input in
                unsafe EVP_Digest(input.baseAddress, input.count, buffer.baseAddress, &size, algorithm, nil)
            }
            initialized = length
        }
        try Libcrypto.check("EVP_Digest", code)
        return digest
    }

    /// HMAC of RFC 2104 with SHA-256, 32 bytes. HMAC(3).
    public static func hmacSHA256(_ message: [UInt8], key: [UInt8]) throws(CryptographyError) -> [UInt8] {
        let key = SecretBytes(key)
        return try hmacSHA256(message, key: key)
    }

    /// HMAC-SHA256 without leaving a copy of the key: HS256 of RFC 7518 section 3.2.
    public static func hmacSHA256(_ message: [UInt8], key: SecretBytes) throws(CryptographyError) -> [UInt8] {
        try unsafe key.withUnsafeBytes { key throws(CryptographyError) in try unsafe hmacSHA256(message, key) }
    }

    private static func hmacSHA256(
        _ message: [UInt8], _ key: UnsafeRawBufferPointer
    ) throws(CryptographyError) -> [UInt8] {
        var isMade = false
        let code = unsafe [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
            unsafe buffer.initialize(repeating: 0)
            var size: UInt32 = 32
            isMade = unsafe message.withUnsafeBufferPointer { input in
                unsafe HMAC(
                    EVP_sha256(), key.baseAddress, Int32(clamping: key.count), input.baseAddress, input.count,
                    buffer.baseAddress, &size) != nil
            }
            initialized = 32
        }
        try Libcrypto.check("HMAC", isMade ? 1 : 0)
        return code
    }
}
