internal import WireText

/// Fault in a server's or an API's metadata (RFC 8414, RFC 9728, OpenID Connect Discovery). The texts are fixed.
public enum DiscoveryFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The request for the server's metadata got no response.
    case network(HeimdallrHTTPClientError)
    /// The well-known addresses or `jwks_uri` answered without a document. Value: the first address's HTTP status.
    case status(Int)
    /// A web page answered with this error status: a firewall, a gateway or a login page in between.
    case webPage(Int)
    /// The metadata is not JSON with an `issuer`, or the document at `jwks_uri` is not JSON with `keys`.
    case malformed
    /// The document does not name the configured issuer. Value: the named issuer, printable.
    case otherIssuer(String)
    /// Neither the document nor the configuration has an endpoint of this name, such as `token_endpoint`.
    case missing(String)
    /// The endpoint of this name is no absolute https:// URL. `allowPlaintext` permits http://, too.
    case unusable(String)
    /// A request to another address got no response. Values: the address's use, the printable address, the reason.
    case unreachable(Link, String, HeimdallrHTTPClientError)
    /// An address that the API names is not allowed. Values: `issuer` or `resource_metadata`, the printable address.
    case unusableLink(String, String)
    /// The metadata of the server that the API names can't be used. Values: the printable issuer, the reason.
    indirect case server(String, DiscoveryFault)
    /// The API has no metadata at its well-known addresses (RFC 9728). Values: the last status, the printable address.
    case noResource(Int, String)
    /// The API's metadata is not a JSON object with `resource`, or one of its members has the wrong type.
    case malformedResource
    /// The API's metadata is for another address. Value: that `resource`, printable.
    case otherResource(String)
    /// The API's metadata names no authorization server.
    case noIssuer
    /// The API's metadata names several servers, and no `issuer` is configured. Value: the printable names.
    case severalIssuers([String])
    /// The API's metadata does not name the configured issuer. Values: the configured and the named issuers.
    case unlistedIssuer(String, listed: [String])
    /// The API or the configuration now names another issuer than the sign-in used. Values: the old and the new issuer.
    case movedIssuer(from: String, to: String)
    /// The server's metadata has no list of PKCE methods (RFC 7636).
    case noPKCE
    /// The server's metadata lists other methods of PKCE than S256.
    case otherPKCE
    /// `grant_types_supported` of the server lacks this grant type.
    case noGrant(String)
    /// The operator's limit excludes all of these scopes.
    case scopesNotAllowed([String])
    /// No client can be registered at the server (RFC 7591). A person has to enter a `client_id`.
    case clientWanted
    /// The registration failed (RFC 7591). Value: the reason.
    case registration(String)
    /// A client was registered less than an hour ago. Value: the time to wait.
    case registeredLately(Duration)
    /// The server no longer knows the client that it registered.
    case clientForgotten
    /// No person has signed in yet, so the server is unknown.
    case notEnrolled

    /// Use of an address that sent no response.
    public enum Link: String, Sendable, Hashable {
        /// `resource_metadata` of a challenge, or a well-known address (RFC 9728).
        case resource = "the API's metadata"
        /// `jwks_uri` (RFC 8414).
        case keys = "the server's keys"
        /// `registration_endpoint` (RFC 8414).
        case registration = "the server's registration endpoint"
    }

    public var description: String {
        switch self {
        case .network(let error): "the server's metadata is unavailable: \(error)"
        case .status(let status):
            "the server's metadata is unavailable (\(status)): check `issuer`, or write the endpoints themselves"
        case .webPage(let status): "a firewall or a web page in between answered \(status), not the server"
        case .malformed: "the server's metadata is not a JSON object of endpoints: check `issuer`"
        case .otherIssuer(let named) where Self.isTemplate(named):
            "the server's metadata is for many issuers, \(named): write the issuer of your own tenant, with its id in that place, or the endpoints themselves"
        case .otherIssuer(let named):
            "the server's metadata belongs to another issuer, \(named): write `issuer` exactly as the server does"
        case .missing(Endpoint.keys.rawValue): "the server's metadata has no jwks_uri, so no id token can be checked"
        case .missing(let name): "the server's metadata has no \(name): write it in the configuration"
        case .unusable(let name):
            "the \(name) of the server's metadata is not an https:// URL; http:// needs `allow_plaintext`"
        case .unreachable(let link, let address, let error): "\(link.rawValue) at \(address) can't be reached: \(error)"
        case .unusableLink(let name, let address):
            "the \(name) that the API names, \(address), is not an https:// URL; http:// needs `allow_plaintext`"
        case .server(let issuer, let fault):
            "the authorization server \(issuer), which the API names: \(fault.textAboutNamedServer)"
        case .noResource(let status, let address):
            "the API does not name its authorization server: \(address) answered \(status)"
        case .malformedResource: "the API's metadata can't be read: it has to be a JSON object with its `resource`"
        case .otherResource(let named):
            "the API's metadata belongs to another address, \(named), so the server that it names is not used"
        case .noIssuer: "the API's metadata names no authorization server: write `issuer`"
        case .severalIssuers(let named):
            "the API's metadata names several authorization servers: pick one as `issuer`: "
                + named.joined(separator: ", ")
        case .unlistedIssuer(let pinned, let listed):
            "the API's metadata does not name the configured issuer \(pinned), but \(listed.joined(separator: ", "))"
        case .movedIssuer(let former, let named):
            "the API's authorization server is now \(named), no longer \(former): sign in again, or write `issuer`"
        case .noPKCE, .otherPKCE:
            "the server's metadata does not list PKCE with S256, without which a sign-in is not safe"
        case .noGrant(let type): "the server's metadata does not list the grant type \(type)"
        case .scopesNotAllowed(let names):
            "`allow_scopes` has none of the scopes that the API asks for: " + names.joined(separator: " ")
        case .clientWanted:
            "the server registers no clients by itself: register one there, and type in its id at the sign-in page, or "
                + "write `client_id`"
        case .registration(let reason): "the server registered no client: \(reason)"
        case .registeredLately(let wait):
            "a client was registered less than an hour ago: the next registration is allowed in "
                + "\(max(1, wait.components.seconds / 60)) min"
        case .clientForgotten: "the server no longer knows the client that it registered: sign in again"
        case .notEnrolled: "nobody has signed in yet, so the authorization server is not known"
        }
    }

    /// Whether a URL has a variable part, such as `{tenantid}`, and is no address itself.
    package static func isTemplate(_ url: String) -> Bool { url.utf8.contains(UInt8(ascii: "{")) }

    static func moved(from former: String, to new: String) -> DiscoveryFault {
        .movedIssuer(from: ForeignText.printable(former), to: ForeignText.printable(new))
    }

    /// Text about a server that the API names. Suggests no configuration keys, because the server is not configured.
    private var textAboutNamedServer: String {
        switch self {
        case .network(let error): "its metadata can't be fetched: \(error)"
        case .status(let status): "its metadata is unavailable (\(status))"
        case .malformed: "its metadata is not a JSON object of endpoints"
        case .missing(let name): "its metadata has no \(name)"
        case .otherIssuer(let named): "its metadata belongs to another issuer, \(named)"
        case .unusable(let name): "the \(name) in its metadata is not an https:// URL; http:// needs `allow_plaintext`"
        default: description
        }
    }
}
