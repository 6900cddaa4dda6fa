import CLinux
import Glibc

public struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Name of the call, as in its manual page.
    public let call: String
    public let code: Int32

    public init(_ call: String, code: Int32 = errno) {
        self.call = call
        self.code = code
    }

    /// Whether this machine does not have the address, or not its address family (bind(2), socket(2)).
    public var isForeignAddress: Bool { code == EADDRNOTAVAIL || code == EAFNOSUPPORT }

    public var description: String {
        var text = [CChar](repeating: 0, count: 128)
        // The GNU form of strerror_r(3) may return a constant string instead of filling the buffer.
        let message = unsafe text.withUnsafeMutableBufferPointer { buffer in
            unsafe String(cString: heimdallr_strerror(code, buffer.baseAddress, buffer.count))
        }
        return "\(call): \(message)"
    }
}

/// Checks a system call's result: negative means failure with `errno` set.
@discardableResult
func check(_ call: String, _ result: Int32) throws(SystemError) -> Int32 {
    guard result >= 0 else { throw SystemError(call) }
    return result
}
