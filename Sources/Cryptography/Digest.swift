import CLibcrypto

public enum Digest {
    /// SHA-256 of FIPS 180-4, 32 bytes.
    public static func sha256(_ bytes: [UInt8]) throws(CryptographyError) -> [UInt8] {
        try unsafe make(bytes, bytes.count, EVP_sha256(), size: 32)
    }

    /// SHA-256 of a secret, without leaving a copy.
    public static func sha256(_ bytes: SecretBytes) throws(CryptographyError) -> [UInt8] { try sha(.sha256, of: bytes) }

    /// SHA-2 of a secret, without leaving a copy.
    public static func sha(
        _ hash: SignatureAlgorithm.Hash, of secret: SecretBytes
    ) throws(CryptographyError) -> [UInt8] {
        try unsafe secret.withUnsafeBytes { bytes throws(CryptographyError) in
            try unsafe make(bytes.baseAddress, bytes.count, hash.digest, size: hash.size)
        }
    }

    /// SHA-1 of FIPS 180-4, 20 bytes, for formats that require it. SHA-1 does not protect against forgery.
    public static func sha1(_ bytes: [UInt8]) throws(CryptographyError) -> [UInt8] {
        try unsafe make(bytes, bytes.count, EVP_sha1(), size: 20)
    }

    /// EVP_Digest(3).
    private static func make(
        _ bytes: UnsafeRawPointer?, _ count: Int, _ digest: OpaquePointer?, size: Int
    ) throws(CryptographyError) -> [UInt8] {
        try unsafe Libcrypto.output("EVP_Digest", size: size) { unsafe EVP_Digest(bytes, count, $0, nil, digest, nil) }
    }

    /// HMAC of RFC 2104 with SHA-256, 32 bytes.
    public static func hmacSHA256(_ message: [UInt8], key: [UInt8]) throws(CryptographyError) -> [UInt8] {
        try hmacSHA256(message, key: SecretBytes(key))
    }

    /// HMAC-SHA256 without leaving a copy of the key: HS256 of RFC 7518 section 3.2. HMAC(3).
    public static func hmacSHA256(_ message: [UInt8], key: SecretBytes) throws(CryptographyError) -> [UInt8] {
        try unsafe key.withUnsafeBytes { key throws(CryptographyError) in
            try unsafe Libcrypto.output("HMAC", size: 32) { output in
                let made = unsafe HMAC(
                    EVP_sha256(), key.baseAddress, Int32(clamping: key.count), message, message.count, output, nil)
                return unsafe made == nil ? 0 : 1
            }
        }
    }
}
