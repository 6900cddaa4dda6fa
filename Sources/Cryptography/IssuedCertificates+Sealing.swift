// The stored form. `SealedReader` describes how sizes and counts are written.
//
//     roots      list of certificates
//     leaves     list of: host, certificate, private key
extension IssuedCertificates {
    /// Version of the layout above.
    private static let format: UInt8 = 1
    /// Distinguishes issued certificates from other sealed bytes.
    private static let context = Array("heimdallr-proxy issued certificates".utf8)

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

    /// Opens the result of `seal(key:)`. Checks each certificate as a strict TLS client would, except for the validity
    /// period. Checks that each key fits its certificate. Takes about as long as issuing the certificates.
    /// - Throws: `CryptographyError.seal` when the bytes were not sealed with this key or have other content,
    ///   `.libcrypto`
    public init(sealed: [UInt8], key: SealingKey) throws(CryptographyError) {
        self = try SealedReader.read(sealed, format: Self.format, context: Self.context, key: key) {
            reader throws(CryptographyError) in try IssuedCertificates(&reader)
        }
    }

    private init(_ reader: inout SealedReader) throws(CryptographyError) {
        roots = try reader.list { reader throws(CryptographyError) in try reader.bytes() }
        var certificates: [X509Certificate] = []
        for root in roots { certificates.append(try X509Certificate(der: root)) }
        let trusted = try TrustedRoots(certificates)
        var leaves: [String: ServerCertificate] = [:]
        for _ in 0..<(try reader.count()) {
            let host = try reader.text()
            let encoded = try reader.bytes()
            let leaf = try X509Certificate(der: encoded)
            let key = try SigningKey(exported: try reader.secret())
            let isAccepted = try trusted.accept(leaf, for: CertificateHost(host))
            guard isAccepted, leaf.belongs(to: key) else { throw .seal(.damaged) }
            leaves[host] = ServerCertificate(chain: [encoded], key: key)
            certificates.append(leaf)
        }
        self.leaves = leaves
        validity = CertificateValidity(
            notBefore: certificates.map(\.notBefore).max() ?? 0, notAfter: certificates.map(\.notAfter).min() ?? 0)
    }
}
