import Glibc

/// What an errno means, for people.
enum SystemReason {
    /// strerror(3), safe on any thread in every C library that we run with.
    static func text(for number: Int32) -> String {
        unsafe String(cString: strerror(number))
    }
}
