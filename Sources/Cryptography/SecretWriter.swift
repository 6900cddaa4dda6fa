import CLibcrypto

/// A builder of a secret. All memory that held bytes of the secret is wiped.
@safe public struct SecretWriter: ~Copyable {
    private var storage: UnsafeMutableBufferPointer<UInt8>
    public private(set) var count = 0

    /// - Parameter capacity: expected size. The writer grows if needed.
    public init(capacity: Int = 64) { unsafe storage = .allocate(capacity: max(capacity, 1)) }

    deinit {
        unsafe OPENSSL_cleanse(storage.baseAddress, count)
        unsafe storage.deallocate()
    }

    public mutating func append(_ byte: UInt8) {
        reserve(1)
        unsafe storage.initializeElement(at: count, to: byte)
        count += 1
    }

    public mutating func append(_ bytes: Span<UInt8>) {
        reserve(bytes.count)
        for index in bytes.indices { unsafe storage.initializeElement(at: count + index, to: bytes[index]) }
        count += bytes.count
    }

    public mutating func append(_ text: String) {
        for byte in text.utf8 { append(byte) }
    }

    public mutating func append(_ secret: SecretBytes) { secret.withSpan { append($0) } }

    /// Lends the bytes written so far.
    public func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result {
        let span = unsafe Span(_unsafeElements: UnsafeBufferPointer(rebasing: storage[..<count]))
        return try body(span)
    }

    public consuming func finish() -> SecretBytes { withSpan { SecretBytes($0) } }

    private mutating func reserve(_ more: Int) {
        guard unsafe storage.count - count < more else { return }
        let bigger = unsafe UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(count + more, storage.count * 2))
        for index in 0..<count { unsafe bigger.initializeElement(at: index, to: storage[index]) }
        unsafe OPENSSL_cleanse(storage.baseAddress, count)
        unsafe storage.deallocate()
        unsafe storage = bigger
    }
}
