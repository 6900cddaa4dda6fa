internal import Cryptography

/// A value that must not be shown: prints as `<redacted>`, compares in constant time, and is wiped from memory when
/// its last copy goes. `revealed` and `revealedBytes` make copies that are not wiped; call them where the value
/// is used, and do not keep what they return.
public struct Secret: Sendable, Hashable, Redacted {
    private let storage: SecretBytes

    public init(_ text: String) {
        var writer = SecretWriter(capacity: text.utf8.count)
        writer.append(text)
        storage = writer.finish()
    }

    /// A copy of bytes that stay the caller's to wipe.
    public init(_ bytes: Span<UInt8>) {
        var writer = SecretWriter(capacity: bytes.count)
        writer.append(bytes)
        storage = writer.finish()
    }

    /// `text` with a secret behind it: `Bearer …`.
    init(_ text: String, before secret: SecretBytes) {
        var writer = SecretWriter(capacity: text.utf8.count + secret.count)
        writer.append(text)
        writer.append(secret)
        storage = writer.finish()
    }

    public init(_ bytes: [UInt8]) {
        storage = SecretBytes(bytes)
    }

    init(_ storage: SecretBytes) {
        self.storage = storage
    }

    /// The same bytes, not a copy.
    var bytes: SecretBytes { storage }

    /// In bytes of UTF-8.
    public var count: Int { storage.count }
    public var isEmpty: Bool { storage.count == 0 }

    public var revealed: String { String(decoding: revealedBytes, as: UTF8.self) }

    public var revealedBytes: [UInt8] {
        storage.withSpan { span in
            var bytes: [UInt8] = []
            bytes.reserveCapacity(span.count)
            for index in span.indices { bytes.append(span[index]) }
            return bytes
        }
    }

    /// The bytes without a copy, for as long as `body` runs.
    public func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result {
        try storage.withSpan(body)
    }

    public static func == (one: Secret, other: Secret) -> Bool {
        one.storage === other.storage || one.storage.isEqual(to: other.storage)
    }

    /// Only the length: a hash of the bytes could be compared.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
    }
}
