import CLibssl
import Cryptography

/// Calls of libssl, with libssl's messages for failures.
enum Libssl {
    /// - Parameter call: a call of libssl that returns 1 for success.
    /// - Throws: `CryptographyError.libcrypto` with libssl's own messages.
    static func check(_ operation: String, _ call: () -> Int32) throws(CryptographyError) {
        ERR_clear_error()
        try Libcrypto.check(operation, call())
    }

    /// Makes an SSL_CTX, which the caller owns.
    static func newContext() throws(CryptographyError) -> OpaquePointer {
        ERR_clear_error()
        guard let context = unsafe heimdallr_server_context() else { throw failure("SSL_CTX_new") }
        return unsafe context
    }

    /// Returns the error of a call that returned no object.
    static func failure(_ operation: String) -> CryptographyError {
        do throws(CryptographyError) { try Libcrypto.check(operation, 0) } catch { return error }
        return .libcrypto(operation: operation, messages: [])
    }
}
