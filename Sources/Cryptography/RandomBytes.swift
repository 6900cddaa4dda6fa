import CLibcrypto
import WireText

public enum RandomBytes {
    /// Returns `count` random bytes from libcrypto's generator, RAND_bytes(3).
    /// - Throws: `CryptographyError.libcrypto` when the generator could not be seeded.
    public static func make(_ count: Int) throws(CryptographyError) -> [UInt8] {
        guard count > 0 else { return [] }
        return try unsafe Libcrypto.output("RAND_bytes", size: count) {
            unsafe RAND_bytes($0, Int32(clamping: count))
        }
    }

    /// Returns an identifier of 128 random bits, as 22 characters of base64url.
    public static func identifier() throws(CryptographyError) -> String { Base64.encode(try make(16), alphabet: .url) }
}
