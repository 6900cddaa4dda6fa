import CLibcrypto

/// Bytes in separate memory, wiped when their last reference is released. Immutable, so safe on any thread.
@safe public final class SecretBytes: Sendable {
    /// Memory of this object, written only in `init` and freed only in `deinit`.
    private nonisolated(unsafe) let storage: UnsafeMutableBufferPointer<UInt8>

    public init(_ bytes: [UInt8]) {
        unsafe storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = unsafe storage.initialize(from: bytes)
    }

    /// Copies `bytes` without an intermediate array. The caller has to wipe the original.
    public init(_ bytes: Span<UInt8>) {
        unsafe storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = unsafe bytes.withUnsafeBufferPointer { unsafe storage.initialize(from: $0) }
    }

    /// Allocates `count` zeros, which `fill` overwrites.
    init<Failure: Error>(
        count: Int, fill: (UnsafeMutableBufferPointer<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        unsafe storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count)
        unsafe storage.initialize(repeating: 0)
        try unsafe fill(storage)
    }

    /// Overwrites the bytes in place. The array must be the only reference to its memory, and must never have grown.
    public static func wipe(_ bytes: inout [UInt8]) {
        unsafe bytes.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) }
        bytes = []
    }

    deinit {
        unsafe OPENSSL_cleanse(storage.baseAddress, storage.count)
        unsafe storage.deallocate()
    }

    public var count: Int { unsafe storage.count }

    /// Lends the bytes to `body`.
    public func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result {
        let span = unsafe Span(_unsafeElements: UnsafeBufferPointer(storage))
        return try body(span)
    }

    /// Lends the bytes to `body`, for calls of C.
    func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(UnsafeRawBufferPointer(storage))
    }

    /// Compares in a time that does not depend on the content. Does not hide the lengths. CRYPTO_memcmp(3).
    public func isEqual(to other: SecretBytes) -> Bool {
        guard count == other.count else { return false }
        return unsafe CRYPTO_memcmp(storage.baseAddress, other.storage.baseAddress, count) == 0
    }
}
