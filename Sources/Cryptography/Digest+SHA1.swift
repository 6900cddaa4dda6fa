import CLibcrypto

extension Digest {
    /// SHA-1 of FIPS 180-4, 20 bytes, for formats that demand it. It protects nothing against a forger. EVP_Digest(3).
    public static func sha1(_ bytes: [UInt8]) throws(CryptographyError) -> [UInt8] {
        var code: Int32 = 0
        let digest = unsafe [UInt8](unsafeUninitializedCapacity: 20) { buffer, initialized in
            unsafe buffer.initialize(repeating: 0)
            var size: UInt32 = 20
            code = unsafe bytes.withUnsafeBytes { input in
                unsafe EVP_Digest(input.baseAddress, input.count, buffer.baseAddress, &size, EVP_sha1(), nil)
            }
            initialized = 20
        }
        try Libcrypto.check("EVP_Digest", code)
        return digest
    }
}
