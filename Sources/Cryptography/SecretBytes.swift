import CLibcrypto

/// Bytes in memory of their own, wiped when the last owner lets go. Immutable, so safe on any thread.
@safe public final class SecretBytes: Sendable {
    /// Owned by this object, written only in `init`, freed only in `deinit`.
    private nonisolated(unsafe) let storage: UnsafeMutableBufferPointer<UInt8>

    public init(_ bytes: [UInt8]) {
        unsafe storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = unsafe storage.initialize(from: bytes)
    }

    /// Copies without an intermediate array, and lets the caller wipe its own buffer.
    init(copying buffer: UnsafeRawBufferPointer) {
        unsafe storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: buffer.count)
        _ = unsafe storage.initialize(from: buffer)
    }

    /// `count` zeros, of which `fill` makes what they shall be.
    init<Failure: Error>(
        count: Int, fill: (UnsafeMutableBufferPointer<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        unsafe storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count)
        unsafe storage.initialize(repeating: 0)
        try unsafe fill(storage)
    }

    /// Overwrites the bytes where they are. The array must be the only reference to them, and never have grown.
    public static func wipe(_ bytes: inout [UInt8]) {
        unsafe bytes.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) }
        bytes = []
    }

    deinit {
        unsafe OPENSSL_cleanse(storage.baseAddress, storage.count)
        unsafe storage.deallocate()
    }

    public var count: Int { unsafe storage.count }

    /// The bytes, for as long as `body` runs.
    public func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result {
        let span = unsafe Span(_unsafeElements: UnsafeBufferPointer(storage))
        return try body(span)
    }

    /// The same for C.
    func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(UnsafeRawBufferPointer(storage))
    }

    /// Takes the same time wherever the bytes differ; the lengths are not hidden. CRYPTO_memcmp(3).
    public func isEqual(to other: SecretBytes) -> Bool {
        guard count == other.count else { return false }
        return unsafe CRYPTO_memcmp(storage.baseAddress, other.storage.baseAddress, count) == 0
    }
}
