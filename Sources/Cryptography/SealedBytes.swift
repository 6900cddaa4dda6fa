import CLibcrypto

/// Bytes that only the holder of the key can read or change: AES-256-GCM, NIST SP 800-38D.
///
///     offset  bytes
///     0       8      "heimdllr"
///     8       1      format of the plain bytes
///     9       8      identifier of the key
///     17      12     nonce, fresh random bytes each time
///     29      n      ciphertext
///     29 + n  16     tag
///
/// The tag authenticates all these bytes and the context. The context is not stored, so the reader has to know it.
public enum SealedBytes {
    private static let magic = Array("heimdllr".utf8)
    private static let nonceSize = 12
    private static let tagSize = 16
    private static let prefixSize = 17
    private static let headerSize = prefixSize + nonceSize
    /// Number of bytes that sealing adds to the plain bytes.
    public static let overhead = headerSize + tagSize

    /// - Parameters:
    ///   - format: version of the layout of `plain`, stored in the clear.
    ///   - context: identity of the owner of the bytes. `open` needs the same context.
    /// - Throws: `CryptographyError.libcrypto`
    public static func seal(
        _ plain: SecretBytes, format: UInt8, context: [UInt8], key: SealingKey
    ) throws(CryptographyError) -> [UInt8] {
        let nonce = try RandomBytes.make(nonceSize)
        let header = magic + [format] + key.identifier + nonce
        let cipher = try GCM(key, nonce: nonce, encrypts: true)
        try cipher.authenticate(header)
        try cipher.authenticate(context)
        let body = try cipher.encrypt(plain, tagSize: tagSize)
        return header + body
    }

    /// - Parameter format: the only format that the caller can read.
    /// - Throws: `CryptographyError.seal` when the bytes were not sealed with this key for this context.
    public static func open(
        _ sealed: [UInt8], format: UInt8, context: [UInt8], key: SealingKey
    ) throws(CryptographyError) -> SecretBytes {
        guard sealed.count > magic.count, sealed.starts(with: magic) else { throw .seal(.foreign) }
        guard sealed[magic.count] == format else { throw .seal(.format(found: sealed[magic.count], supported: format)) }
        guard sealed.count >= overhead else { throw .seal(.foreign) }
        guard Array(sealed[(magic.count + 1)..<prefixSize]) == key.identifier else { throw .seal(.key) }
        let header = Array(sealed[..<headerSize])
        let cipher = try GCM(key, nonce: Array(header[prefixSize...]), encrypts: false)
        try cipher.authenticate(header)
        try cipher.authenticate(context)
        return try cipher.decrypt(
            Array(sealed[headerSize..<(sealed.count - tagSize)]), tag: Array(sealed[(sealed.count - tagSize)...]))
    }
}

/// One encryption or decryption with AES-256-GCM. EVP_EncryptInit(3), "AEAD Interface" and "GCM and OCB Modes".
@safe private final class GCM {
    /// EVP_CIPHER_CTX, made in `init`. `deinit` frees it, which also wipes the key schedule.
    private let state: OpaquePointer

    init(_ key: SealingKey, nonce: [UInt8], encrypts: Bool) throws(CryptographyError) {
        unsafe state = try unsafe Libcrypto.made("EVP_CIPHER_CTX_new", EVP_CIPHER_CTX_new())
        let code = unsafe key.bytes.withUnsafeBytes { key in
            unsafe nonce.withUnsafeBufferPointer { nonce in
                unsafe EVP_CipherInit_ex(
                    state, EVP_aes_256_gcm(), nil, key.bindMemory(to: UInt8.self).baseAddress, nonce.baseAddress,
                    encrypts ? 1 : 0)
            }
        }
        try Libcrypto.check("EVP_CipherInit_ex", code)
    }

    deinit { unsafe EVP_CIPHER_CTX_free(state) }

    func authenticate(_ bytes: [UInt8]) throws(CryptographyError) {
        guard !bytes.isEmpty else { return }
        var count: Int32 = 0
        let code = unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe EVP_CipherUpdate(state, nil, &count, bytes.baseAddress, Int32(clamping: bytes.count))
        }
        try Libcrypto.check("EVP_CipherUpdate", code)
    }

    /// - Returns: the ciphertext, followed by the tag.
    func encrypt(_ plain: SecretBytes, tagSize: Int) throws(CryptographyError) -> [UInt8] {
        let size = plain.count
        var code: Int32 = 1
        var operation = ""
        let output = unsafe [UInt8](unsafeUninitializedCapacity: size + tagSize) { buffer, initialized in
            unsafe buffer.initialize(repeating: 0)
            initialized = size + tagSize
            var count: Int32 = 0
            func step(_ name: String, _ result: Int32) {
                if code == 1 {
                    code = result
                    operation = name
                }
            }
            if size > 0 {
                unsafe plain.withUnsafeBytes { plain in
                    step(
                        "EVP_CipherUpdate",
                        unsafe EVP_CipherUpdate(
                            state, buffer.baseAddress, &count, plain.bindMemory(to: UInt8.self).baseAddress,
                            Int32(clamping: plain.count)))
                }
            }
            let end = unsafe buffer.baseAddress?.advanced(by: size)
            step("EVP_CipherFinal_ex", unsafe EVP_CipherFinal_ex(state, end, &count))
            step(
                "EVP_CTRL_AEAD_GET_TAG",
                unsafe EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_GET_TAG, Int32(tagSize), end))
        }
        try Libcrypto.check(operation, code)
        return output
    }

    /// Decrypts, and wipes the result if the tag is wrong.
    func decrypt(_ body: [UInt8], tag: [UInt8]) throws(CryptographyError) -> SecretBytes {
        var tag = tag
        let code = unsafe tag.withUnsafeMutableBytes { tag in
            unsafe EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), tag.baseAddress)
        }
        try Libcrypto.check("EVP_CTRL_AEAD_SET_TAG", code)
        return try unsafe SecretBytes(count: body.count) { output throws(CryptographyError) in
            var count: Int32 = 0
            if !body.isEmpty {
                let code = unsafe body.withUnsafeBufferPointer { body in
                    unsafe EVP_CipherUpdate(
                        state, output.baseAddress, &count, body.baseAddress, Int32(clamping: body.count))
                }
                try Libcrypto.check("EVP_CipherUpdate", code)
            }
            var rest: UInt8 = 0
            guard unsafe EVP_CipherFinal_ex(state, &rest, &count) == 1 else {
                Libcrypto.forgetErrors()
                throw .seal(.damaged)
            }
        }
    }
}
