import WireText

/// Reads the content of sealed bytes, never past its end. Before each text, certificate and key comes its size, and
/// before each list its count, in 4 bytes, big-endian.
struct SealedReader {
    private let plain: SecretBytes
    private var position = 0

    /// Opens sealed bytes, and lets `body` read the content. `body` has to read all of it.
    /// - Throws: `CryptographyError.libcrypto`, and `.seal` for any other fault.
    static func read<Result>(
        _ sealed: [UInt8], format: UInt8, context: [UInt8], key: SealingKey,
        _ body: (inout SealedReader) throws(CryptographyError) -> Result
    ) throws(CryptographyError) -> Result {
        var reader = SealedReader(try SealedBytes.open(sealed, format: format, context: context, key: key))
        do throws(CryptographyError) {
            let result = try body(&reader)
            guard reader.position == reader.plain.count else { throw .seal(.damaged) }
            return result
        } catch {
            if case .libcrypto = error { throw error }
            throw .seal(.damaged)
        }
    }

    private init(_ bytes: SecretBytes) { plain = bytes }

    /// Reads a size or a count. Throws if it is larger than the number of bytes that follow.
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

    mutating func list<Element>(
        _ element: (inout SealedReader) throws(CryptographyError) -> Element
    ) throws(CryptographyError) -> [Element] {
        var elements: [Element] = []
        for _ in 0..<(try count()) { elements.append(try element(&self)) }
        return elements
    }

    mutating func text() throws(CryptographyError) -> String { String(decoding: try bytes(), as: UTF8.self) }

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
