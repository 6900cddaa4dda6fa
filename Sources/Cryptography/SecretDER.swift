/// The part of the Distinguished Encoding Rules for private keys. All memory that held a key is wiped.
enum SecretDER {
    static func sequence(_ parts: [SecretBytes]) -> SecretBytes { element(0x30, parts) }
    static func octets(_ content: SecretBytes) -> SecretBytes { element(0x04, [content]) }
    static func plain(_ bytes: [UInt8]) -> SecretBytes { SecretBytes(bytes) }

    /// A non-negative integer, big-endian.
    static func integer(_ magnitude: SecretBytes) -> SecretBytes {
        var digits = SecretWriter(capacity: magnitude.count + 1)
        magnitude.withSpan { bytes in
            var start = 0
            while start < bytes.count - 1, bytes[start] == 0 { start += 1 }
            if start >= bytes.count || bytes[start] >= 0x80 { digits.append(0) }
            digits.append(bytes.extracting(start..<bytes.count))
        }
        return element(0x02, [digits.finish()])
    }

    static func element(_ tag: UInt8, _ parts: [SecretBytes]) -> SecretBytes {
        let count = parts.reduce(0) { $0 + $1.count }
        var output = SecretWriter(capacity: count + 8)
        for byte in DER.header(tag, count: count) { output.append(byte) }
        for part in parts { output.append(part) }
        return output.finish()
    }
}
