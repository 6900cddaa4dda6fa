internal import Cryptography
internal import WireText

/// A value that must not be shown. It prints as `<redacted>`, compares in constant time, and is wiped with its last
/// copy. `revealed` and `revealedBytes` return copies that are not wiped: keep them for a short time only.
public struct Secret: Sendable, Hashable, Redacted {
    private let storage: SecretBytes

    /// Copies a text, as UTF-8. The text itself is not wiped.
    public init(_ text: String) {
        var writer = SecretWriter(capacity: text.utf8.count)
        writer.append(text)
        storage = writer.finish()
    }

    /// Copies bytes. The caller has to wipe the originals.
    public init(_ bytes: Span<UInt8>) { storage = SecretBytes(bytes) }

    /// Makes a secret of `text` followed by `secret`, such as `Bearer …`.
    init(_ text: String, before secret: SecretBytes) {
        var writer = SecretWriter(capacity: text.utf8.count + secret.count)
        writer.append(text)
        writer.append(secret)
        storage = writer.finish()
    }

    /// Copies bytes. The array itself is not wiped.
    public init(_ bytes: [UInt8]) { storage = SecretBytes(bytes) }

    init(_ storage: SecretBytes) { self.storage = storage }

    /// The compact text of a JSON value, of which no other copy stays.
    init(json: JSON) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(4096)
        json.write(.compact) { bytes.append($0) }
        defer { SecretBytes.wipe(&bytes) }
        self.init(bytes)
    }

    /// The same bytes, not a copy.
    var bytes: SecretBytes { storage }

    /// The length in bytes.
    public var count: Int { storage.count }
    /// Whether the secret has no bytes.
    public var isEmpty: Bool { storage.count == 0 }

    /// A copy as text, which is not wiped. Bytes that are not UTF-8 become U+FFFD.
    public var revealed: String { String(decoding: revealedBytes, as: UTF8.self) }

    /// A copy of the bytes, which is not wiped.
    public var revealedBytes: [UInt8] { storage.withSpan { [UInt8](copying: $0) } }

    /// Lends the bytes to `body` without a copy. They can't escape from `body`.
    /// - Throws: the error of `body`.
    public func withSpan<Result>(_ body: (Span<UInt8>) throws -> Result) rethrows -> Result {
        try storage.withSpan(body)
    }

    /// Compares in a time that depends only on the lengths.
    public static func == (one: Secret, other: Secret) -> Bool {
        one.storage === other.storage || one.storage.isEqual(to: other.storage)
    }

    /// Hashes only the length, because a hash of the bytes would reveal something about them.
    public func hash(into hasher: inout Hasher) { hasher.combine(count) }
}

// Values of header fields that hold secrets. Their buffers are wiped.
extension Secret {
    /// Returns the secret after `scheme` and a space; without a scheme, the secret itself.
    package func after(scheme: String) -> Secret { scheme.isEmpty ? self : Secret("\(scheme) ", before: bytes) }

    /// Returns credentials for HTTP Basic (RFC 7617 section 2). The bytes are not converted.
    package static func basic(username: Secret, password: Secret) -> Secret {
        var pair = SecretWriter(capacity: username.count + 1 + password.count)
        pair.append(username.bytes)
        pair.append(UInt8(ascii: ":"))
        pair.append(password.bytes)
        return Secret("Basic ", before: Base64.encode(pair.finish()))
    }
}

/// A value that always prints as `<redacted>`: by `print`, in a debugger and by `dump`.
public protocol Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
    /// `<redacted>`
    public var description: String { "<redacted>" }
    /// The same as `description`.
    public var debugDescription: String { description }
    /// A mirror without children, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
