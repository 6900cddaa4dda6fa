import CLibcrypto
import WireText

/// Cryptographic random bytes.
public enum RandomBytes {
    /// `count` bytes from libcrypto's generator, RAND_bytes(3).
    /// - Throws: `CryptographyError.libcrypto` when the generator could not be seeded.
    public static func make(_ count: Int) throws(CryptographyError) -> [UInt8] {
        guard count > 0 else { return [] }
        var code: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            unsafe buffer.initialize(repeating: 0)
            code = unsafe RAND_bytes(buffer.baseAddress, Int32(clamping: buffer.count))
            initialized = count
        }
        try Libcrypto.check("RAND_bytes", code)
        return bytes
    }

    /// An identifier of 128 random bits, as 22 characters of base64url.
    public static func identifier() throws(CryptographyError) -> String {
        Base64.encode(try make(16), alphabet: .url)
    }
}
