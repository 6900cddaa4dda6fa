import WireText

/// The certificates of an authority that no longer exists: its public roots, and a leaf with its key for each host.
/// Immutable, so safe on any thread.
public struct IssuedCertificates: Sendable {
    /// DER of the certificates that programs have to trust: one for names, one for addresses, each only if there are such.
    public let roots: [[UInt8]]
    /// By host, spelled as it was listed.
    public let leaves: [String: ServerCertificate]
    /// Start of validity, in seconds since 1970-01-01T00:00:00Z.
    public let notBefore: Int64
    /// End of validity.
    public let notAfter: Int64

    /// The roots as PEM (RFC 7468), to be appended to a bundle.
    public var rootsPEM: String { roots.map(Self.pem).joined() }

    /// Whether these can be served at that time: they are for these hosts, spelled alike, and a third of their life is
    /// left.
    public func fits(_ hosts: some Sequence<String>, now: Int64 = WallClock.now()) -> Bool {
        notBefore <= now && now <= notAfter && (notAfter - now) * 3 >= notAfter - notBefore
            && Set(leaves.keys) == Set(hosts)
    }

    static func pem(_ certificate: [UInt8]) -> String {
        let text = Array(Base64.encode(certificate).utf8)
        let lines = stride(from: 0, to: text.count, by: 64).map {
            String(decoding: text[$0..<min($0 + 64, text.count)], as: UTF8.self) + "\n"
        }
        return "-----BEGIN CERTIFICATE-----\n\(lines.joined())-----END CERTIFICATE-----\n"
    }
}
