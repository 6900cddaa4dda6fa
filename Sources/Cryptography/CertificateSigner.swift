/// The certificate of an authority with the key that signs others. The key never leaves the memory, and is wiped with
/// the last reference to it.
struct CertificateSigner: Sendable {
    /// Names that it may sign, as DER of GeneralName.
    struct Constraints {
        var permitted: [[UInt8]]
        var excluded: [[UInt8]] = []

        /// All addresses, IPv4 and IPv6.
        static let addresses = [4, 16].map { GeneralName.address([UInt8](repeating: 0, count: $0 * 2)) }
    }

    /// DER
    let certificate: [UInt8]
    let key: SigningKey
    /// Subject, as DER.
    let name: [UInt8]
    let keyIdentifier: [UInt8]
}

extension CertificateSigner {
    /// - Parameters:
    ///   - pathLength: number of further authorities between this one and a leaf.
    ///   - issuer: the authority above; `nil` for a root.
    init(
        _ constraints: Constraints, pathLength: UInt8 = 0, validity: CertificateValidity,
        issuer: CertificateSigner? = nil
    ) throws(CryptographyError) {
        key = try SigningKey.generate()
        // Unique, so that no program confuses it with the one before.
        name = CertificateForm.name("heimdallr-proxy \(try RandomBytes.identifier())")
        let publicKey = try key.encodedPublicKey()
        // RFC 7093 section 2, method 1: of the point, the last 65 bytes.
        keyIdentifier = Array(try Digest.sha256(Array(publicKey.suffix(65))).prefix(20))
        var extensions = [
            CertificateExtension.authority(pathLength: pathLength), CertificateExtension.signsCertificates,
            CertificateExtension.subjectKey(keyIdentifier),
            CertificateExtension.constraints(permitted: constraints.permitted, excluded: constraints.excluded),
        ]
        if let issuer { extensions.append(CertificateExtension.issuerKey(issuer.keyIdentifier)) }
        let form = CertificateForm(
            issuer: issuer?.name ?? name, subject: name, validity: validity, publicKey: publicKey,
            extensions: extensions)
        certificate = try form.signed(by: issuer?.key ?? key)
    }

    /// A certificate with a key of its own.
    func leaf(
        for host: CertificateHost, validity: CertificateValidity
    ) throws(CryptographyError) -> (certificate: [UInt8], key: SigningKey) {
        let own = try SigningKey.generate()
        let form = CertificateForm(
            issuer: name, subject: CertificateForm.emptyName, validity: validity,
            publicKey: try own.encodedPublicKey(),
            extensions: [
                CertificateExtension.signsHandshakes, CertificateExtension.servesTLS,
                CertificateExtension.issuerKey(keyIdentifier), CertificateExtension.host(host),
            ])
        return (try form.signed(by: key), own)
    }
}
