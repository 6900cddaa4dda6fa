/// An authority for hosts that can't be listed in advance. Its key stays in memory and signs for the hosts of some
/// domains, to which its certificate constrains it (RFC 5280 section 4.2.1.10). Immutable, so safe on any thread.
public struct SigningIntermediate: Sendable {
    /// Limit of its domains. Some clients refuse a certificate that is much larger.
    public static let maxDomains = 900
    /// Limit of its certificate, in bytes. Java takes TLS messages of 32 KiB, and the leaf is in the same one.
    private static let maxSize = 30_000

    /// DER of the root, which programs have to trust. The root's key no longer exists.
    public let root: [UInt8]
    private let signer: CertificateSigner
    private let domains: Set<String>
    private let validity: CertificateValidity

    /// - Parameters:
    ///   - domains: such as `example.com`, which covers the name itself and all names below it. In lower case.
    ///   - lifetime: in seconds from now on.
    ///   - now: seconds since 1970-01-01T00:00:00Z.
    /// - Throws: `CryptographyError.certificateHost` for a domain that no certificate can name, `.certificateDomains`,
    ///   `.libcrypto`
    public init(
        for domains: some Sequence<String>, lifetime: Int64 = CertificateAuthority.lifetime,
        now: Int64 = WallClock.now()
    ) throws(CryptographyError) {
        self.domains = Set(domains)
        validity = CertificateValidity(lifetime: lifetime, now: now)
        // Without a name among the permitted, all names would be.
        guard (1...Self.maxDomains).contains(self.domains.count) else {
            throw .certificateDomains(self.domains.count)
        }
        // E-mail addresses and URIs too, for clients that fall back to the common name beside them.
        var permitted = [GeneralName.email("invalid"), GeneralName.uri("invalid")]
        for domain in self.domains.sorted() {
            let host = try CertificateHost(domain)
            guard case .name = host else { throw .certificateHost(domain) }
            permitted.append(host.generalName)
        }
        let constraints = CertificateSigner.Constraints(
            permitted: permitted, excluded: CertificateSigner.Constraints.addresses)
        let above = try CertificateSigner(constraints, pathLength: 1, validity: validity)
        root = above.certificate
        signer = try CertificateSigner(constraints, validity: validity, issuer: above)
        guard signer.certificate.count <= Self.maxSize else { throw .certificateDomains(self.domains.count) }
    }

    /// The root as PEM (RFC 7468).
    public var rootPEM: String { IssuedCertificates.pem(root) }
    /// Start of validity of all its certificates, in seconds since 1970-01-01T00:00:00Z.
    public var notBefore: Int64 { validity.notBefore }
    /// End of validity.
    public var notAfter: Int64 { validity.notAfter }

    /// Whether the host is one of the domains, or below one.
    public func covers(_ host: String) -> Bool {
        var rest = host[...]
        while !domains.contains(String(rest)) {
            guard let dot = rest.firstIndex(of: ".") else { return false }
            rest = rest[rest.index(after: dot)...]
        }
        return true
    }

    /// Makes a certificate with a key of its own. Takes up to half a millisecond.
    /// - Parameter host: an exact name in lower case.
    /// - Throws: `CryptographyError.uncoveredHost`, `.certificateHost` for a host that no certificate can name,
    ///   `.libcrypto`
    public func certificate(for host: String) throws(CryptographyError) -> ServerCertificate {
        let name = try CertificateHost(host)
        guard covers(host) else { throw .uncoveredHost(host) }
        let leaf = try signer.leaf(for: name, validity: validity)
        return ServerCertificate(chain: [leaf.certificate, signer.certificate], key: leaf.key)
    }
}
