public import WireText

/// An authority for hosts that can't be listed in advance. Its key stays in memory and signs for the hosts of some
/// domains, to which its certificate constrains it (RFC 5280 section 4.2.1.10). Immutable, so safe on any thread.
public struct SigningIntermediate: Sendable {
    /// Limit of its domains. Some clients refuse a certificate that is much larger.
    public static let maxDomains = 900
    /// Limit of its certificate, in bytes. Java takes TLS messages of 32 KiB, and the leaf is in the same one.
    private static let maxSize = 30_000

    /// DER of the root, which programs have to trust. The root's key no longer exists.
    public let root: [UInt8]
    /// Without those that are below others.
    public let domains: DomainSet
    let signer: CertificateSigner
    let validity: CertificateValidity
}

extension SigningIntermediate {
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
        self.domains = DomainSet(domains)
        validity = CertificateValidity(lifetime: lifetime, now: now)
        // Without a name among the permitted, all names would be.
        let count = self.domains.names.count
        guard (1...Self.maxDomains).contains(count) else { throw .certificateDomains(count) }
        // E-mail addresses and URIs too, for clients that fall back to the common name beside them.
        var permitted = [GeneralName.email("invalid"), GeneralName.uri("invalid")]
        for domain in self.domains.names.sorted() {
            let host = try CertificateHost(domain)
            guard case .name = host else { throw .certificateHost(domain) }
            permitted.append(host.generalName)
        }
        let constraints = CertificateSigner.Constraints(
            permitted: permitted, excluded: CertificateSigner.Constraints.addresses)
        let above = try CertificateSigner(constraints, pathLength: 1, validity: validity)
        root = above.certificate
        signer = try CertificateSigner(constraints, validity: validity, issuer: above)
        guard signer.certificate.count <= Self.maxSize else { throw .certificateDomains(count) }
    }

    /// The root as PEM (RFC 7468).
    public var rootPEM: String { X509Certificate.pem(root) }

    /// Whether this can sign for these domains at that time: they are the same, and a third of its life is left.
    public func fits(_ domains: DomainSet, now: Int64 = WallClock.now()) -> Bool {
        validity.isFresh(at: now) && self.domains == domains
    }

    /// Makes a certificate with a key of its own. Takes up to half a millisecond.
    /// - Parameter host: an exact name in lower case.
    /// - Throws: `CryptographyError.uncoveredHost`, `.certificateHost` for a host that no certificate can name,
    ///   `.libcrypto`
    public func certificate(for host: String) throws(CryptographyError) -> ServerCertificate {
        let name = try CertificateHost(host)
        guard domains.covers(host) else { throw .uncoveredHost(host) }
        let leaf = try signer.leaf(for: name, validity: validity)
        return ServerCertificate(chain: [leaf.certificate, signer.certificate], key: leaf.key)
    }
}
