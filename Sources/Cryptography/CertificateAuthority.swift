/// A short-lived authority for TLS between programs and this process. Its key is wiped after signing, so no key remains
/// that could sign for another host.
public enum CertificateAuthority {
    /// Default lifetime of certificates: 30 days, in seconds.
    public static let lifetime: Int64 = 30 * 86_400

    /// Checks the hosts without issuing a certificate.
    /// - Throws: `CryptographyError.certificateHost` for a host that no certificate can name.
    public static func check(_ hosts: some Sequence<String>) throws(CryptographyError) {
        for host in hosts { _ = try CertificateHost(host) }
    }

    /// Makes one certificate for each host, signed by a root for names or a root for addresses, then wipes the roots'
    /// keys. Takes half a millisecond for each host. Call it on a thread that may block.
    ///
    /// The first root is constrained to the listed names (RFC 5280 section 4.2.1.10). The second root permits no name,
    /// but any address, because some clients refuse every address below a root that constrains addresses.
    /// - Parameters:
    ///   - hosts: exact names in lower case (IDNs as punycode), and numeric addresses without brackets.
    ///   - lifetime: in seconds from now on.
    ///   - now: seconds since 1970-01-01T00:00:00Z.
    /// - Throws: `CryptographyError.certificateHost` for a host that no certificate can name, `.libcrypto`
    public static func issue(
        for hosts: some Sequence<String>, lifetime: Int64 = lifetime, now: Int64 = WallClock.now()
    ) throws(CryptographyError) -> IssuedCertificates {
        var names: [(text: String, host: CertificateHost)] = []
        var addresses: [(text: String, host: CertificateHost)] = []
        for text in Set(hosts).sorted() {
            let host = try CertificateHost(text)
            if case .name = host { names.append((text, host)) } else { addresses.append((text, host)) }
        }
        let validity = CertificateValidity(lifetime: lifetime, now: now)
        var roots: [[UInt8]] = []
        var leaves: [String: ServerCertificate] = [:]
        func issue(_ hosts: [(text: String, host: CertificateHost)], _ constraints: CertificateSigner.Constraints)
            throws(CryptographyError)
        {
            guard !hosts.isEmpty else { return }
            let root = try CertificateSigner(constraints, validity: validity)
            roots.append(root.certificate)
            for (text, host) in hosts {
                let leaf = try root.leaf(for: host, validity: validity)
                leaves[text] = ServerCertificate(chain: [leaf.certificate], key: leaf.key)
            }
        }
        try issue(
            names, .init(permitted: names.map(\.host.generalName), excluded: CertificateSigner.Constraints.addresses))
        try issue(addresses, .init(permitted: [GeneralName.name("invalid")]))
        return IssuedCertificates(roots: roots, leaves: leaves, validity: validity)
    }
}
