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
    /// An API that names its server itself has no metadata at any of its addresses (RFC 9728): the last HTTP status.
    case noResource(Int)
    /// The API's metadata is not a JSON object with its address.
    case malformedResource
    /// The API's metadata belongs to another address: that `resource`, made printable.
    case otherResource(String)
    /// The API's metadata names no authorization server.
    case noIssuer
    /// The API's metadata names several authorization servers, and the configuration picks none: these, made printable.
    case severalIssuers([String])
    /// The API's metadata does not name the configured issuer: that one, and the named ones.
    case unlistedIssuer(String, listed: [String])
    /// The API's metadata names another issuer than the one of the sign-in: both, made printable.
    case movedIssuer(from: String, to: String)
    /// The server's metadata does not promise PKCE with S256 (RFC 7636).
    case noPKCE
    /// The server's metadata does not offer this grant type.
    case noGrant(String)
    /// The operator's limit leaves none of these scopes.
    case scopesNotAllowed([String])
    /// The server offers no way to get a `client_id` by program: a person has to type one in.
    case clientWanted
    /// The server registered no client (RFC 7591): why.
    case registration(String)
    /// A client was registered less than an hour ago: the time to wait.
    case registeredLately(Duration)
    /// The server no longer knows the client that it registered.
    case clientForgotten
    /// Nobody has signed in yet, so the server is unknown.
    case notEnrolled

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
        case .noResource, .malformedResource, .otherResource, .noIssuer, .severalIssuers, .unlistedIssuer,
            .movedIssuer, .noPKCE, .noGrant, .scopesNotAllowed, .clientWanted, .registration, .registeredLately,
            .clientForgotten, .notEnrolled:
            enrolmentSentence
        }
    }
}

extension DiscoveryFault {
    /// Sentences about an API that names its authorization server itself.
    private var enrolmentSentence: String {
        switch self {
        case .noResource(let status):
            "the API does not say where its tokens come from (\(status)): send it a request through the proxy first, or "
                + "write `issuer`"
        case .malformedResource: "the API's metadata can't be read: it has to be a JSON object with its `resource`"
        case .otherResource(let named):
            "the API's metadata belongs to another address, \(named), so nothing is sent to its server"
        case .noIssuer: "the API's metadata names no authorization server: write `issuer`"
        case .severalIssuers(let named):
            "the API's metadata names several authorization servers: pick one as `issuer`: "
                + named.joined(separator: ", ")
        case .unlistedIssuer(let pinned, let listed):
            "the API's metadata does not name the configured issuer \(pinned), but \(listed.joined(separator: ", "))"
        case .movedIssuer(let former, let named):
            "the API's tokens now come from \(named), no longer from \(former): sign in again"
        case .noPKCE: "the server's metadata does not promise PKCE with S256, without which no sign-in is safe"
        case .noGrant(let type): "the server's metadata does not offer the grant \(type)"
        case .scopesNotAllowed(let names):
            "`allow_scopes` has none of the scopes that the API asks for: " + names.joined(separator: " ")
        case .clientWanted:
            "the server registers no clients by itself: register one there, and type in its id at the sign-in page, or "
                + "write `client_id`"
        case .registration(let reason): "the server registered no client: \(reason)"
        case .registeredLately(let wait):
            "a client was registered less than an hour ago: the next registration may follow in "
                + "\(max(1, wait.components.seconds / 60)) min"
        case .clientForgotten: "the server no longer knows the client that it registered: sign in again"
        default: "nobody has signed in yet, so the authorization server is not known"
        }
    }
}
