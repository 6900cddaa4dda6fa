import CLibcrypto

/// Conversion of libcrypto's return codes into errors, with the library's own messages.
///
/// Manual: ERR_get_error(3), ERR_error_string_n(3).
package enum Libcrypto {
    /// - Throws: `CryptographyError.libcrypto` unless `code` is 1, libcrypto's success.
    package static func check(_ operation: String, _ code: Int32) throws(CryptographyError) {
        guard code != 1 else { return }
        var messages: [String] = []
        while messages.count < 8 {
            let number = ERR_get_error()
            guard number != 0 else { break }
            let text = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
                guard let base = buffer.baseAddress else { return "" }
                unsafe ERR_error_string_n(number, base, buffer.count)
                return unsafe String(cString: base)
            }
            messages.append(text)
        }
        throw .libcrypto(operation: operation, messages: messages)
    }

    /// Returns the `size` bytes that a function of libcrypto writes.
    static func output(
        _ operation: String, size: Int, _ write: (UnsafeMutablePointer<UInt8>?) -> Int32
    ) throws(CryptographyError) -> [UInt8] {
        var code: Int32 = 0
        let output = unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, initialized in
            unsafe buffer.initialize(repeating: 0)
            code = unsafe write(buffer.baseAddress)
            initialized = size
        }
        try check(operation, code)
        return output
    }

    /// Returns the DER that an i2d function writes (i2d_X509(3)).
    static func der(
        _ operation: String, _ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) throws(CryptographyError) -> [UInt8] {
        let size = encode(nil)
        return try unsafe output(operation, size: Int(max(0, size))) {
            var position = unsafe $0
            return unsafe size > 0 && encode(&position) == size ? 1 : 0
        }
    }

    /// Returns the object that a d2i function reads (d2i_X509(3)).
    static func parse(
        _ bytes: [UInt8], _ decode: (UnsafeMutablePointer<UnsafePointer<UInt8>?>, Int) -> OpaquePointer?
    ) -> OpaquePointer? {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe decode(&position, bytes.count)
        }
    }

    /// Returns the text that `write` writes to a BIO, at most `limit` bytes; empty if `write` fails.
    package static func text(limit: Int = 256, _ write: (OpaquePointer) -> Bool) -> String {
        guard let output = unsafe BIO_new(BIO_s_mem()) else { return "" }
        defer { unsafe BIO_free(output) }
        guard unsafe write(output) else { return "" }
        return unsafe String(
            decoding: [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
                initialized = max(0, Int(unsafe BIO_read(output, buffer.baseAddress, Int32(buffer.count))))
            }, as: UTF8.self)
    }

    /// Returns a new object of libcrypto.
    /// - Throws: `CryptographyError.libcrypto` for `nil`: libcrypto lacks memory.
    static func made(_ operation: String, _ object: OpaquePointer?) throws(CryptographyError) -> OpaquePointer {
        guard let object = unsafe object else { throw .libcrypto(operation: operation, messages: ["out of memory"]) }
        return unsafe object
    }

    /// Clears libcrypto's error queue after a failure, so that a later failure does not report the old errors.
    static func forgetErrors() { ERR_clear_error() }
}

extension SecretBytes {
    /// Lends a BIO that reads the bytes. BIO_new_mem_buf(3).
    /// - Parameter failure: result if libcrypto lacks memory.
    func withBIO<Result>(or failure: Result, _ body: (OpaquePointer) -> Result) -> Result {
        unsafe withUnsafeBytes { bytes in
            guard let bio = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                return failure
            }
            defer { unsafe BIO_free(bio) }
            return unsafe body(bio)
        }
    }
}

/// Refuses a passphrase, so that libcrypto does not prompt at the terminal. pem_password_cb(3).
func refusePassphrase(
    _ room: UnsafeMutablePointer<CChar>?, _ size: Int32, _ isWriting: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 { -1 }
