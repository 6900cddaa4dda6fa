/// Why the server's metadata is of no use: RFC 8414, OpenID Connect Discovery. Fixed sentences, but for what is said to be the server's.
public enum DiscoveryFault: Error, Sendable, Hashable, CustomStringConvertible {
    case network(HeimdallrHTTPClientError)
    /// Neither well-known address has a document.
    case status(Int)
    /// JSON of another kind, or none.
    case malformed
    /// The document belongs to another issuer: the one that it names, made printable.
    case otherIssuer(String)
    /// It has no endpoint of this name, and the configuration has none.
    case missing(String)
    /// The endpoint of this name is not an absolute https:// URL, or an http:// one that nobody allowed.
    case unusable(String)

    public var description: String {
        switch self {
        case .network(let error): "the server's metadata could not be had: \(error)"
        case .status(let status):
            "the server's metadata could not be had (\(status)): check `issuer`, or write the endpoints themselves"
        case .malformed: "the server's metadata is not a JSON object of endpoints: check `issuer`"
        case .otherIssuer(let named):
            "the server's metadata belongs to another issuer, \(named): write `issuer` exactly as the server does"
        case .missing(let name): "the server's metadata has no \(name): write it in the configuration"
        case .unusable(let name):
            "the \(name) of the server's metadata is not an https:// URL; http:// needs `allow_plaintext`"
        }
    }
}
