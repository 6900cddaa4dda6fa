/// Fault of the server's metadata (RFC 8414, OpenID Connect Discovery). The texts are fixed sentences.
public enum DiscoveryFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// No answer came.
    case network(HeimdallrHTTPClientError)
    /// Neither well-known address has a document: the HTTP status of the last answer.
    case status(Int)
    /// The document is not a JSON object, or a member of it has the wrong type.
    case malformed
    /// The document names another issuer than the configuration: that issuer, made printable.
    case otherIssuer(String)
    /// Neither the document nor the configuration has an endpoint of this name, such as `token_endpoint`.
    case missing(String)
    /// The endpoint of this name is no absolute https:// URL, and no http:// one that `allowPlaintext` permits.
    case unusable(String)

    public var description: String {
        switch self {
        case .network(let error): "the server's metadata could not be had: \(error)"
        case .status(let status):
            "the server's metadata could not be had (\(status)): check `issuer`, or write the endpoints themselves"
        case .malformed: "the server's metadata is not a JSON object of endpoints: check `issuer`"
        case .otherIssuer(let named):
            "the server's metadata belongs to another issuer, \(named): write `issuer` exactly as the server does"
        case .missing(Endpoint.keys.rawValue): "the server's metadata has no jwks_uri, so no id token can be checked"
        case .missing(let name): "the server's metadata has no \(name): write it in the configuration"
        case .unusable(let name):
            "the \(name) of the server's metadata is not an https:// URL; http:// needs `allow_plaintext`"
        }
    }
}
