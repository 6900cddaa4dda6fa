import WireText

// The stored form. Before each text, certificate and key stands its size, before each list its count, in 4 bytes,
// big-endian:
//
//     roots      list of certificates
//     leaves     list of: host, certificate, private key
extension IssuedCertificates {
    /// Of the layout above.
    private static let format: UInt8 = 1
    /// Distinguishes these from other sealed bytes.
    private static let context = Array("heimdallr-proxy issued certificates".utf8)

    /// - Throws: `CryptographyError.libcrypto`
    public func seal(key: SealingKey) throws(CryptographyError) -> [UInt8] {
        var output = SecretWriter(capacity: 4096 + leaves.count * 1024)
        output.append(count: roots.count)
        for root in roots { output.append(sized: root) }
        output.append(count: leaves.count)
        for (host, leaf) in leaves {
            output.append(sized: Array(host.utf8))
            output.append(sized: leaf.chain.first ?? [])
            try leaf.key.exported().withSpan { output.append(sized: $0) }
        }
        return try SealedBytes.seal(output.finish(), format: Self.format, context: Self.context, key: key)
    }

    /// Opens the result of `seal(key:)`. Each certificate is checked as a strict TLS client does, but for the time, and
    /// each key against its certificate. Takes about as long as making them.
    /// - Throws: `CryptographyError.seal` when the bytes were not sealed with this key or hold anything else,
    ///   `.libcrypto`
    public init(sealed: [UInt8], key: SealingKey) throws(CryptographyError) {
        let plain = try SealedBytes.open(sealed, format: Self.format, context: Self.context, key: key)
        var reader = Reader(bytes: plain)
        do throws(CryptographyError) {
            try self.init(&reader)
        } catch .libcrypto(let operation, let messages) {
            throw .libcrypto(operation: operation, messages: messages)
        } catch {
            throw .seal(.damaged)
        }
    }

    private init(_ reader: inout Reader) throws(CryptographyError) {
        var roots: [[UInt8]] = []
        var certificates: [X509Certificate] = []
        for _ in 0..<(try reader.count()) {
            roots.append(try reader.bytes())
            certificates.append(try X509Certificate(der: roots[roots.count - 1]))
        }
        let trusted = try TrustedRoots(certificates)
        var leaves: [String: ServerCertificate] = [:]
        for _ in 0..<(try reader.count()) {
            let host = String(decoding: try reader.bytes(), as: UTF8.self)
            let encoded = try reader.bytes()
            let leaf = try X509Certificate(der: encoded)
            let key = try SigningKey(exported: try reader.secret())
            let isAccepted = try trusted.accept(leaf, for: CertificateHost(host))
            guard isAccepted, leaf.belongs(to: key) else { throw .seal(.damaged) }
            leaves[host] = ServerCertificate(chain: [encoded], key: key)
            certificates.append(leaf)
        }
        guard reader.isAtEnd else { throw .seal(.damaged) }
        self.roots = roots
        self.leaves = leaves
        notBefore = certificates.map(\.notBefore).max() ?? 0
        notAfter = certificates.map(\.notAfter).min() ?? 0
    }
}

/// Reads the plain bytes, and never more than there are.
private struct Reader {
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
        return plain.withSpan { SecretBytes($0.extracting(range)) }
    }

    private mutating func range() throws(CryptographyError) -> Range<Int> {
        let count = try count()
        defer { position += count }
        return position..<(position + count)
    }
}

extension SecretWriter {
    fileprivate mutating func append(count: Int) {
        for byte in UInt32(truncatingIfNeeded: count).bigEndianBytes { append(byte) }
    }

    fileprivate mutating func append(sized bytes: [UInt8]) { append(sized: bytes.span) }

    fileprivate mutating func append(sized bytes: Span<UInt8>) {
        append(count: bytes.count)
        append(bytes)
    }
}
