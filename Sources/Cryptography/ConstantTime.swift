import CLibcrypto

/// Comparisons in constant time.
public enum ConstantTime {
    /// Compares the content in constant time. Does not hide the lengths. CRYPTO_memcmp(3).
    public static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        guard one.count == other.count else { return false }
        return unsafe one.withUnsafeBytes { first in
            unsafe other.withUnsafeBytes { second in
                unsafe CRYPTO_memcmp(first.baseAddress, second.baseAddress, first.count) == 0
            }
        }
    }
}
