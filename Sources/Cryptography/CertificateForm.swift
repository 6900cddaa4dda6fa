import WireText

/// An unsigned X.509 certificate of version 3. RFC 5280 section 4.1. All parts but the times are DER.
struct CertificateForm {
    var issuer: [UInt8]
    var subject: [UInt8]
    var validity: CertificateValidity
    /// SubjectPublicKeyInfo
    var publicKey: [UInt8]
    var extensions: [[UInt8]]

    /// A name without attributes, for certificates that name their host only in the subject alternative name.
    static let emptyName = DER.sequence([])

    /// Returns a name with one attribute, the common name. RFC 5280 section 4.1.2.4.
    static func name(_ commonName: String) -> [UInt8] {
        let attribute = DER.identifier([0x55, 0x04, 0x03]) + DER.text(commonName)
        return DER.sequence(DER.set(DER.sequence(attribute)))
    }

    /// Signs with ecdsa-with-SHA256 (RFC 5758 section 3.2), under a random serial number of 128 bits.
    /// - Parameter key: a P-256 key.
    /// - Returns: the certificate as DER.
    func signed(by key: SigningKey) throws(CryptographyError) -> [UInt8] {
        let algorithm = DER.sequence(DER.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02]))
        let version3 = DER.tagged(0, DER.integer([2]))
        let serial = DER.integer(try RandomBytes.make(16))
        let body = DER.sequence(
            version3 + serial + algorithm + issuer + validity.encoded + subject + publicKey
                + DER.tagged(3, DER.sequence(Array(extensions.joined()))))
        let pair = try key.sign(body, by: .es256)
        // ECDSA-Sig-Value of RFC 3279 section 2.2.3.
        let signature = DER.sequence(DER.integer(Array(pair.prefix(32))) + DER.integer(Array(pair.suffix(32))))
        return DER.sequence(body + algorithm + DER.bits(signature))
    }
}

/// Validity period of certificates, in seconds since 1970-01-01T00:00:00Z.
struct CertificateValidity: Sendable {
    var notBefore: Int64
    var notAfter: Int64

    /// Whether at least a third of the period is left.
    func isFresh(at now: Int64) -> Bool {
        notBefore <= now && now <= notAfter && (notAfter - now) * 3 >= notAfter - notBefore
    }

    var encoded: [UInt8] { DER.sequence(Self.time(notBefore) + Self.time(notAfter)) }

    /// UTCTime until 2049, then GeneralizedTime. RFC 5280 section 4.1.2.5.
    private static func time(_ seconds: Int64) -> [UInt8] {
        let digits = RFC3339.text(Int(seconds)).utf8.filter { ASCII.isDigit($0) || $0 == UInt8(ascii: "Z") }
        let isShort = (-631_152_000..<2_524_608_000).contains(seconds)
        return isShort ? DER.element(0x17, Array(digits.dropFirst(2))) : DER.element(0x18, digits)
    }
}

extension CertificateValidity {
    /// Begins five minutes ago, for clients whose clocks are slow.
    init(lifetime: Int64, now: Int64) { self.init(notBefore: now - 300, notAfter: now + lifetime) }
}

/// Extensions of RFC 5280 section 4.2, as DER.
enum CertificateExtension {
    /// Basic constraints, section 4.2.1.9. `pathLength`: limit of further authorities between this one and a leaf.
    static func authority(pathLength: UInt8) -> [UInt8] {
        make(19, isCritical: true, DER.sequence(DER.yes + DER.integer([pathLength])))
    }

    /// Key usage keyCertSign, section 4.2.1.3.
    static let signsCertificates = make(15, isCritical: true, DER.bits([0x04], unused: 2))
    /// Key usage digitalSignature, section 4.2.1.3.
    static let signsHandshakes = make(15, isCritical: true, DER.bits([0x80], unused: 7))
    /// Extended key usage serverAuth, section 4.2.1.12.
    static let servesTLS = make(
        37, isCritical: false, DER.sequence(DER.identifier([0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01])))

    /// Subject key identifier, section 4.2.1.2.
    static func subjectKey(_ identifier: [UInt8]) -> [UInt8] { make(14, isCritical: false, DER.octets(identifier)) }

    /// Authority key identifier, section 4.2.1.1.
    static func issuerKey(_ identifier: [UInt8]) -> [UInt8] {
        make(35, isCritical: false, DER.sequence(DER.primitive(0, identifier)))
    }

    /// Subject alternative name of one host, section 4.2.1.6. Critical, because the subject is empty.
    static func host(_ host: CertificateHost) -> [UInt8] { make(17, isCritical: true, DER.sequence(host.generalName)) }

    /// Name constraints, section 4.2.1.10.
    static func constraints(permitted: [[UInt8]], excluded: [[UInt8]]) -> [UInt8] {
        func subtrees(_ names: [[UInt8]]) -> [UInt8] { Array(names.map(DER.sequence).joined()) }
        let content = DER.tagged(0, subtrees(permitted)) + (excluded.isEmpty ? [] : DER.tagged(1, subtrees(excluded)))
        return make(30, isCritical: true, DER.sequence(content))
    }

    /// - Parameter number: last arc of the extension's identifier below id-ce, 2.5.29.
    private static func make(_ number: UInt8, isCritical: Bool, _ value: [UInt8]) -> [UInt8] {
        DER.sequence(DER.identifier([0x55, 0x1D, number]) + (isCritical ? DER.yes : []) + DER.octets(value))
    }
}
