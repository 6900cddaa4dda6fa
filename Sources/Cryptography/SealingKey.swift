import WireText

/// A key of AES-256, wiped from memory with its last reference.
public final class SealingKey: Sendable {
    /// Bytes of a key.
    public static let size = 32

    let bytes: SecretBytes
    /// Distinguishes keys without revealing them: the first 8 bytes of a digest.
    public let identifier: [UInt8]

    public init(_ bytes: SecretBytes) throws(CryptographyError) {
        guard bytes.count == Self.size else { throw .keySize(bytes.count) }
        self.bytes = bytes
        identifier = try Self.identifier(of: bytes)
    }

    /// Reads a key from a file or a variable: 32 raw bytes, or their base64 with optional white space around it.
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
