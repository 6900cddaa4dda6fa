import WireText

// The stored form. `SealedReader` describes how sizes and counts are written.
//
//     root
//     certificate, private key, name and key identifier of the intermediate
//     domains    list of names
extension SigningIntermediate {
    /// Version of the layout above.
    private static let format: UInt8 = 1
    /// Distinguishes a sealed intermediate from other sealed bytes.
    private static let context = Array("heimdallr-proxy signing intermediate".utf8)

    public func seal(key: SealingKey) throws(CryptographyError) -> [UInt8] {
        var output = SecretWriter(capacity: 4096 + signer.certificate.count * 4)
        output.append(sized: root)
        try signer.write(to: &output)
        output.append(count: domains.names.count)
        for domain in domains.names.sorted() { output.append(sized: Array(domain.utf8)) }
        return try SealedBytes.seal(output.finish(), format: Self.format, context: Self.context, key: key)
    }

    /// Opens the result of `seal(key:)`.
    /// - Throws: `CryptographyError.seal` when the bytes were not sealed with this key, or the root has not signed the
    ///   intermediate; `.libcrypto`
    public init(sealed: [UInt8], key: SealingKey) throws(CryptographyError) {
        self = try SealedReader.read(sealed, format: Self.format, context: Self.context, key: key) {
            reader throws(CryptographyError) in
            let root = try reader.bytes()
            let signer = try CertificateSigner(&reader)
            let domains = try reader.list { reader throws(CryptographyError) in try reader.text() }
            let (upper, lower) = (try X509Certificate(der: root), try X509Certificate(der: signer.certificate))
            guard !domains.isEmpty, lower.isSigned(by: upper) else { throw .seal(.damaged) }
            let validity = CertificateValidity(notBefore: lower.notBefore, notAfter: lower.notAfter)
            return SigningIntermediate(root: root, domains: DomainSet(domains), signer: signer, validity: validity)
        }
    }
}

extension CertificateSigner {
    fileprivate func write(to output: inout SecretWriter) throws(CryptographyError) {
        output.append(sized: certificate)
        try key.exported().withSpan { output.append(sized: $0) }
        output.append(sized: name)
        output.append(sized: keyIdentifier)
    }

    fileprivate init(_ reader: inout SealedReader) throws(CryptographyError) {
        let certificate = try reader.bytes()
        let key = try SigningKey(exported: try reader.secret())
        self.init(certificate: certificate, key: key, name: try reader.bytes(), keyIdentifier: try reader.bytes())
        guard try X509Certificate(der: certificate).belongs(to: key) else { throw .seal(.damaged) }
    }
}
