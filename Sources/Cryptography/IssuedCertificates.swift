/// The certificates of an authority that no longer exists: its public roots, and a leaf with its key for each host.
/// Immutable, so safe on any thread.
public struct IssuedCertificates: Sendable {
    /// DER of the certificates that programs have to trust: one for names, one for addresses, each only if there are such.
    public let roots: [[UInt8]]
    /// By host, spelled as it was listed.
    public let leaves: [String: ServerCertificate]
    let validity: CertificateValidity

    /// The roots as PEM (RFC 7468), to be appended to a bundle.
    public var rootsPEM: String { roots.map(X509Certificate.pem).joined() }

    /// Whether these can be served at that time: there is one for each of these hosts, spelled alike, and a third of their
    /// life is left.
    public func fits(_ hosts: some Sequence<String>, now: Int64 = WallClock.now()) -> Bool {
        validity.isFresh(at: now) && hosts.allSatisfy { leaves[$0] != nil }
    }

    /// The same without the certificates of other hosts.
    public func limited(to hosts: Set<String>) -> IssuedCertificates {
        IssuedCertificates(roots: roots, leaves: leaves.filter { hosts.contains($0.key) }, validity: validity)
    }
}
