import Glibc

enum SystemReason {
    /// strerror(3), thread-safe in every supported C library.
    static func text(for number: Int32) -> String { unsafe String(cString: strerror(number)) }
}
