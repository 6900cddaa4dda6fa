/// End of validity of a certificate that connections depend on.
public struct CertificateEnd: Sendable, Hashable {
    /// Role of the certificate. The raw values are a metric's label.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The proxy's own certificate, from a file.
        case clientCertificate = "client_certificate"
        /// The certificate of a listener, from a file.
        case listenerCertificate = "listener_certificate"
        /// Trust anchors in a file: the first one to end.
        case trustAnchors = "trust_anchors"
        /// Presented by an upstream.
        case upstream
        /// Presented by a client's authorization server.
        case authorizationServer = "authorization_server"
    }

    public var kind: Kind
    /// A file's path, an upstream's host or a client's name, as configured.
    public var name: String
    /// Seconds since 1970.
    public var at: Int64

    public init(_ kind: Kind, _ name: String, at: Int64) {
        self.kind = kind
        self.name = name
        self.at = at
    }
}
