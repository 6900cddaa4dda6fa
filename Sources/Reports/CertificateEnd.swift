/// End of validity of a certificate that connections depend on.
public struct CertificateEnd: Sendable, Hashable {
    /// Role of the certificate. The raw values are values of a metric's label.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The proxy's client certificate, from a file.
        case clientCertificate = "client_certificate"
        /// The certificate of a listener, from a file.
        case listenerCertificate = "listener_certificate"
        /// The first certificate to expire in a file of trust anchors.
        case trustAnchors = "trust_anchors"
        /// A certificate that an upstream presented.
        case upstream
        /// A certificate that a client's authorization server presented.
        case authorizationServer = "authorization_server"
    }

    public var kind: Kind
    /// A file's path, an upstream's host or a client's name, as configured.
    public var name: String
    /// End of validity in seconds since 1970.
    public var at: Int64

    public init(_ kind: Kind, _ name: String, at: Int64) {
        self.kind = kind
        self.name = name
        self.at = at
    }
}
