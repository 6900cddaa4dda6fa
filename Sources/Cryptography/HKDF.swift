import WireText

/// Keys from another key: HKDF with SHA-256, RFC 5869.
public enum HKDF {
    /// Returns 32 bytes: the first block of section 2.3.
    /// - Parameters:
    ///   - secret: key material of full strength, no password.
    ///   - purpose: `info` of section 3.2, another one for each use of the material.
    public static func sha256(
        _ secret: SecretBytes, salt: [UInt8] = Array(repeating: 0, count: 32), purpose: [UInt8]
    ) throws(CryptographyError) -> SecretBytes {
        // HMAC takes a key, and the secret is the message here: section 2.2.
        var material = secret.withSpan { [UInt8](copying: $0) }
        defer { SecretBytes.wipe(&material) }
        var extracted = try Digest.hmacSHA256(material, key: salt)
        defer { SecretBytes.wipe(&extracted) }
        var expanded = try Digest.hmacSHA256(purpose + [1], key: extracted)
        defer { SecretBytes.wipe(&expanded) }
        return SecretBytes(expanded)
    }
}
