import WireText

/// A key of AES-256, wiped when its last reference is released.
public final class SealingKey: Sendable {
    /// Size of a key in bytes.
    public static let size = 32

    let bytes: SecretBytes
    /// First 8 bytes of a digest of the key, which distinguish keys without revealing them.
    public let identifier: [UInt8]

    public init(_ bytes: SecretBytes) throws(CryptographyError) {
        guard bytes.count == Self.size else { throw .keySize(bytes.count) }
        self.bytes = bytes
        identifier = try Self.identifier(of: bytes)
    }

    /// Reads a key from the content of a file or variable: 32 raw bytes, or base64 with optional white space around it.
    /// - Throws: `CryptographyError.keySize` with the number of bytes found.
    public convenience init(text: SecretBytes) throws(CryptographyError) {
        guard text.count != Self.size else {
            try self.init(text)
            return
        }
        var key = SecretWriter(capacity: text.count)
        let isBase64 = text.withSpan { digits in Base64.decode(digits.trimmed, as: .either) { key.append($0) } }
        guard isBase64 else { throw .keySize(text.count) }
        try self.init(key.finish())
    }

    /// Returns a key for another purpose. It reveals nothing about this key, nor about a key for a third purpose.
    public func derived(for purpose: String) throws(CryptographyError) -> SecretBytes {
        try HKDF.sha256(bytes, purpose: Array("heimdallr-proxy \(purpose)".utf8))
    }

    private static func identifier(of bytes: SecretBytes) throws(CryptographyError) -> [UInt8] {
        let label = Array("heimdallr-proxy sealing key identifier".utf8)
        var input: [UInt8] = []
        input.reserveCapacity(label.count + bytes.count)
        input += label
        bytes.withSpan { input.append(copying: $0) }
        defer { SecretBytes.wipe(&input) }
        return Array(try Digest.sha256(input).prefix(8))
    }
}
