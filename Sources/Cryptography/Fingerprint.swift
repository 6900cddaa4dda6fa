import CLibcrypto

/// SHA-256 (FIPS 180-4) of a value, used as a key in tables that must not hold the value itself. Computed without an
/// allocation in Swift.
public struct Fingerprint: Sendable, Hashable {
    private let words: SIMD4<UInt64>

    /// EVP_Digest(3).
    public init(_ bytes: Span<UInt8>) throws(CryptographyError) {
        var words = SIMD4<UInt64>()
        var size: UInt32 = 32
        let code = unsafe bytes.withUnsafeBufferPointer { input in
            unsafe withUnsafeMutableBytes(of: &words) { output in
                unsafe EVP_Digest(
                    input.baseAddress, input.count, output.bindMemory(to: UInt8.self).baseAddress, &size, EVP_sha256(),
                    nil)
            }
        }
        try Libcrypto.check("EVP_Digest", code)
        self.words = words
    }

    /// The first 64 bits: enough to distinguish the few values of a configuration.
    public var number: UInt64 { words[0] }
}
