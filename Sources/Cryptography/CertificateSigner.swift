/// The certificate of an authority, and the key that signs other certificates. The key stays in memory, and is wiped
/// when its last reference is released.
struct CertificateSigner: Sendable {
    /// Names for which the authority may sign, and excluded names, as DER of GeneralName.
    struct Constraints {
        var permitted: [[UInt8]]
        var excluded: [[UInt8]] = []

        /// All addresses, IPv4 and IPv6.
        static let addresses = [4, 16].map { GeneralName.address([UInt8](repeating: 0, count: $0 * 2)) }
    }

    /// The authority's certificate as DER.
    let certificate: [UInt8]
    let key: SigningKey
    /// Subject of the certificate, as DER.
    let name: [UInt8]
    let keyIdentifier: [UInt8]
}

extension CertificateSigner {
    /// - Parameters:
    ///   - pathLength: limit of further authorities between this one and a leaf.
    ///   - issuer: the authority above; `nil` for a root.
    init(
        _ constraints: Constraints, pathLength: UInt8 = 0, validity: CertificateValidity,
        issuer: CertificateSigner? = nil
    ) throws(CryptographyError) {
        key = try SigningKey.generate()
        // A unique name, so that no program confuses this authority with an earlier one.
        name = CertificateForm.name("heimdallr-proxy \(try RandomBytes.identifier())")
        let publicKey = try key.encodedPublicKey()
        // RFC 7093 section 2, method 1. The last 65 bytes of the public key are its point.
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

    /// Returns a certificate for `host`, with a new key.
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
