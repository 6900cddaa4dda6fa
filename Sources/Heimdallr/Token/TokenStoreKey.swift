package import Cryptography

/// The AES-256-GCM key that seals records. Prints as `<redacted>`.
public struct TokenStoreKey: Sendable, Redacted {
    /// Wiped from memory with its last copy.
    package let sealing: SealingKey

    /// - Parameter text: 32 bytes, or base64 of 32 bytes. `heimdallr-proxy keygen` makes a key.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured` if `text` has another form.
    public init(_ text: Secret) throws(TokenStoreError) { try self.init(text.bytes, from: "the key") }

    /// Reads the key from a file. Blocks the thread until the disk answers.
    /// - Parameter path: a file that holds 32 bytes, or base64 of 32 bytes.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured` if the file can't be read or has another form.
    public init(file path: String) throws(TokenStoreError) {
        let bytes: SecretBytes
        do throws(CryptographyError) {
            bytes = try SecretFile.read(path: path, trimsLineEnd: false)
        } catch { throw TokenStoreError("the token store's key: \(error)", kind: .misconfigured) }
        try self.init(bytes, from: path)
    }

    /// Returns a key for another purpose, which does not reveal this one.
    package func derived(for purpose: String) throws(CryptographyError) -> SecretBytes {
        try sealing.derived(for: purpose)
    }

    private init(_ bytes: SecretBytes, from location: String) throws(TokenStoreError) {
        do throws(CryptographyError) {
            sealing = try SealingKey(text: bytes)
        } catch {
            throw TokenStoreError(
                "the token store's key in \(location) can't be used: \(error); write 32 bytes, raw or base64, as "
                    + "`heimdallr-proxy keygen` makes them",
                kind: .misconfigured)
        }
    }
}
