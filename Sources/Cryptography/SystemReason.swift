import Glibc

enum SystemReason {
    /// Returns the text of strerror(3), which is thread-safe in every supported C library.
    static func text(for number: Int32) -> String { unsafe String(cString: strerror(number)) }
}
