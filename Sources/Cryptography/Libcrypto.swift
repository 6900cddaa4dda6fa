import CLibcrypto

/// The one place that turns libcrypto's return codes into errors, with the library's own messages.
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

    /// A new object of libcrypto.
    /// - Throws: `CryptographyError.libcrypto` for none: libcrypto lacks memory.
    static func made(_ operation: String, _ object: OpaquePointer?) throws(CryptographyError) -> OpaquePointer {
        guard let object = unsafe object else { throw .libcrypto(operation: operation, messages: ["out of memory"]) }
        return unsafe object
    }

    /// Clears the errors of a failure that has its own message, so that a later failure does not report them.
    static func forgetErrors() { ERR_clear_error() }
}
