/// A key of AES-256, wiped from memory with its last reference.
public final class SealingKey: Sendable {
    /// In bytes.
    public static let size = 32

    let bytes: SecretBytes
    /// Tells keys apart without saying anything about them: the first 8 bytes of a digest.
    let identifier: [UInt8]

    /// - Throws: `CryptographyError.keySize`
    public init(_ bytes: SecretBytes) throws(CryptographyError) {
        guard bytes.count == Self.size else { throw .keySize(bytes.count) }
        self.bytes = bytes
        identifier = try Self.identifier(of: bytes)
    }

    /// From what an operator keeps in a file or a variable: 32 bytes as they are, or their base64, with white space
    /// around it.
    /// - Throws: `CryptographyError.keySize` with the number of bytes that it makes.
    public convenience init(text: SecretBytes) throws(CryptographyError) {
        guard text.count != Self.size else {
            try self.init(text)
            return
        }
        var copy: [UInt8] = []
        copy.reserveCapacity(text.count)
        text.withSpan { span in
            for index in span.indices { copy.append(span[index]) }
        }
        defer { SecretBytes.wipe(&copy) }
        var digits = copy[...]
        while let last = digits.last, Self.isSpace(last) { digits.removeLast() }
        while let first = digits.first, Self.isSpace(first) { digits.removeFirst() }
        var trimmed = Array(digits)
        digits = []
        defer { SecretBytes.wipe(&trimmed) }
        guard var decoded = Base64.decode(trimmed) else { throw .keySize(text.count) }
        defer { SecretBytes.wipe(&decoded) }
        try self.init(SecretBytes(decoded))
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    private static func identifier(of bytes: SecretBytes) throws(CryptographyError) -> [UInt8] {
        let label = Array("heimdallr-proxy sealing key identifier".utf8)
        var input: [UInt8] = []
        input.reserveCapacity(label.count + bytes.count)
        input += label
        bytes.withSpan { span in
            for index in span.indices { input.append(span[index]) }
        }
        defer { SecretBytes.wipe(&input) }
        return Array(try Digest.sha256(input).prefix(8))
    }
}
