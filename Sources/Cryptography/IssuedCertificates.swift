/// The certificates of an authority that no longer exists: its public roots, and a leaf with its key for each host.
/// Immutable, so safe on any thread.
public struct IssuedCertificates: Sendable {
    /// DER of the roots that programs have to trust: one if there are names, and one if there are addresses.
    public let roots: [[UInt8]]
    /// Leaf certificates by host, in the spelling of the list of hosts.
    public let leaves: [String: ServerCertificate]
    let validity: CertificateValidity

    /// The roots as PEM (RFC 7468), to be appended to a bundle.
    public var rootsPEM: String { roots.map(X509Certificate.pem).joined() }

    /// Whether each of `hosts`, in the same spelling, has a certificate, and at least a third of the validity period is
    /// left at the time `now`.
    public func fits(_ hosts: some Sequence<String>, now: Int64 = WallClock.now()) -> Bool {
        validity.isFresh(at: now) && hosts.allSatisfy { leaves[$0] != nil }
    }

    /// Returns a copy with all roots, but only the leaves of `hosts`.
    public func limited(to hosts: Set<String>) -> IssuedCertificates {
        IssuedCertificates(roots: roots, leaves: leaves.filter { hosts.contains($0.key) }, validity: validity)
    }
}
