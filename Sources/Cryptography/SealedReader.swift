import WireText

/// Reads the plain bytes of sealed ones, and never more than there are. Before each text, certificate and key stands its
/// size, before each list its count, in 4 bytes, big-endian.
struct SealedReader {
    let plain: SecretBytes
    private var position = 0

    init(bytes: SecretBytes) { plain = bytes }

    var isAtEnd: Bool { position == plain.count }

    /// Throws where the rest can't hold as many bytes.
    mutating func count() throws(CryptographyError) -> Int {
        let start = position
        guard plain.count - start >= 4 else { throw .seal(.damaged) }
        position += 4
        let count = plain.withSpan { span in (start..<(start + 4)).reduce(0) { $0 << 8 | Int(span[$1]) } }
        guard count <= plain.count - position else { throw .seal(.damaged) }
        return count
    }

    mutating func bytes() throws(CryptographyError) -> [UInt8] {
        let range = try range()
        return plain.withSpan { [UInt8](copying: $0.extracting(range)) }
    }

    mutating func secret() throws(CryptographyError) -> SecretBytes {
        let range = try range()
        var writer = SecretWriter(capacity: range.count)
        plain.withSpan { writer.append($0.extracting(range)) }
        return writer.finish()
    }

    private mutating func range() throws(CryptographyError) -> Range<Int> {
        let count = try count()
        defer { position += count }
        return position..<(position + count)
    }
}

extension SecretWriter {
    mutating func append(count: Int) {
        for shift in [24, 16, 8, 0] { append(UInt8(truncatingIfNeeded: count >> shift)) }
    }

    mutating func append(sized bytes: [UInt8]) { append(sized: bytes.span) }

    mutating func append(sized bytes: Span<UInt8>) {
        append(count: bytes.count)
        append(bytes)
    }
}

extension CryptographyError {
    /// The same for a fault of libcrypto, and `.seal(.damaged)` for any other one found in opened bytes.
    var inSealedBytes: CryptographyError {
        if case .libcrypto = self { self } else { .seal(.damaged) }
    }
}
