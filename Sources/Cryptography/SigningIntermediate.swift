public import WireText

/// An authority for hosts that can't be listed in advance. Its key stays in memory and signs for hosts of the given
/// domains. Its certificate permits no others (RFC 5280 section 4.2.1.10). Immutable, so safe on any thread.
public struct SigningIntermediate: Sendable {
    /// Limit of the number of domains. Some clients refuse a much larger certificate.
    public static let maxDomains = 900
    /// Size limit of the authority's certificate. Java accepts TLS messages up to 32 KiB, which also hold the leaf.
    private static let maxSize = 30_000

    /// DER of the root, which programs have to trust. The root's key no longer exists.
    public let root: [UInt8]
    /// The domains, without those below other listed domains.
    public let domains: DomainSet
    let signer: CertificateSigner
    let validity: CertificateValidity
}

extension SigningIntermediate {
    /// - Parameters:
    ///   - domains: in lower case. `example.com` covers this name and all names below it.
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
        // If no domain were listed as permitted, every domain would be permitted.
        let count = self.domains.names.count
        guard (1...Self.maxDomains).contains(count) else { throw .certificateDomains(count) }
        // E-mail addresses and URIs are constrained, too. Otherwise, a leaf with only such names would break no
        // constraint, and some clients would accept its common name.
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

    /// Whether this authority has the same domains, and at least a third of its validity period is left at `now`.
    public func fits(_ domains: DomainSet, now: Int64 = WallClock.now()) -> Bool {
        validity.isFresh(at: now) && self.domains == domains
    }

    /// Issues a certificate with a new key. Takes up to half a millisecond.
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
