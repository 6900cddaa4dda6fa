/// When a certificate ends that connections depend on.
public struct CertificateEnd: Sendable, Hashable {
    /// Whose it is. The raw values are a metric's label.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// Our own, from a file.
        case clientCertificate = "client_certificate"
        /// Those in a file that others are checked by: the one that ends next.
        case trustAnchors = "trust_anchors"
        /// Shown by an upstream.
        case upstream
        /// Shown by a client's authorization server.
        case authorizationServer = "authorization_server"
    }

    public var kind: Kind
    /// A file's path, an upstream's host or a client's name, as the configuration has it.
    public var name: String
    /// In seconds since 1970.
    public var at: Int64

    public init(_ kind: Kind, _ name: String, at: Int64) {
        self.kind = kind
        self.name = name
        self.at = at
    }
}
