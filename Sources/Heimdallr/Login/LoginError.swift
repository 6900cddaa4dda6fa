/// Reason why a login failed. Nothing has changed then. The text says what to do and holds no secret.
public enum LoginError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The client's grant has no login of this kind, or the login belongs to another client.
    case wrongMethod
    /// The redirect URI is relative, has a fragment, is http to another host, or has a reserved query parameter.
    case badRedirectURI
    /// A `client_id` that a person has typed in, or its secret, is empty, too long, or has characters that can't be sent.
    case badClient
    /// An endpoint is neither configured nor in the server's metadata: its name, such as `authorization_endpoint`.
    case noEndpoint(String)
    /// An endpoint was to come from the server's metadata, which can't be used.
    case discovery(DiscoveryFault)
    /// The URL that came back is not the redirect URI.
    case foreignRedirect
    /// The URL that came back can't be read: a parameter twice, an escape cut off, neither a code nor an error.
    case malformedRedirect
    /// The answer's `state` belongs to another login, or to none: RFC 6749 section 10.12.
    case wrongState
    /// The answer came by another browser than the one that began the login.
    case foreignBrowser
    /// The answer's `iss` names another server, or is missing though this server always sends it: RFC 9207.
    case wrongIssuer
    /// The person took too long.
    case expired
    /// The server refused, at the browser or at an endpoint, with this error.
    case refused(OAuthError)
    /// The server refused the pushed request (RFC 9126); the browser was not sent there. The server's answer.
    case pushRefused(OAuthError)
    /// A request to the server failed, or its answer can't be used.
    case endpoint(TokenEndpointFault)
    /// The id token was refused.
    case idToken(IDTokenFault)
    /// The login began with another server or account, or with another client, resource or scope, than this client has now.
    case reconfigured
    /// The client was logged out, or logged in by another login, while this one was under way.
    case overtaken
    /// The task that waited was cancelled.
    case cancelled
    /// `Heimdallr.shutdown()` was called.
    case stopped
    /// The machine gave no random numbers, so nothing was sent.
    case noRandomness
    /// The documents of the API or its server say something else than the offer that the person agreed to: the changed parts.
    case offerChanged([SignInOffer.Part])
    /// A pushed request is required (RFC 9126), but would expire before a person opens the address.
    case pushingRequired

    public var description: String {
        switch self {
        case .wrongMethod: "this client's grant type has no login of this kind"
        case .badRedirectURI:
            "the redirect URI can't be used: write an absolute URI without a fragment, https:// or on loopback"
        case .badClient: "the client_id or its secret is empty, too long, or has other characters than ASCII"
        case .noEndpoint(Endpoint.keys.rawValue): DiscoveryFault.missing(Endpoint.keys.rawValue).description
        case .noEndpoint(let name):
            "the \(name) is not known: write it in the configuration, or an issuer whose metadata names it"
        case .discovery(let fault): fault.description
        case .foreignRedirect:
            "this is not the address that the server was asked to answer to: paste the whole address of the page that "
                + "the browser was sent to"
        case .malformedRedirect: "the address that came back can't be read: sign in again"
        case .wrongState: "the answer does not belong to this login: sign in again, and answer only your own"
        case .foreignBrowser: "the answer came by another browser than the one that began the login"
        case .wrongIssuer: "the answer comes from another server than the one that was asked: nothing was sent to it"
        case .expired: "the login took too long: sign in again"
        case .refused(let error): Self.sentence(for: error)
        case .pushRefused(let error): "the server refused the pushed authorization request (PAR): \(error)"
        case .endpoint(let fault): "the server gave no token: \(fault)"
        case .idToken(let fault): "the server's id token was refused: \(fault)"
        case .reconfigured:
            "the login began with another server, client_id, resource or scope than this client has now: sign in again"
        case .overtaken: "the client was logged in or out in another way meanwhile"
        case .cancelled: "the login was cancelled"
        case .stopped: "this client has been shut down"
        case .noRandomness: "the machine gave no random numbers: nothing was sent"
        case .offerChanged: "the API or its server has changed since the offer was shown: look at the new offer"
        case .pushingRequired:
            "the request has to be pushed (`par: required`, or the server's metadata), and an address that is printed "
                + "would outlive it: sign in at the page"
        }
    }

    private static func sentence(for error: OAuthError) -> String {
        let meaning =
            switch error.code {
            case .accessDenied: "the sign-in was refused"
            case .invalidScope: "the server does not grant this scope: check `scope`"
            case .unauthorizedClient: "the server does not allow this client to log in like this"
            case .unsupportedResponseType, .unsupportedGrantType: "the server does not know this kind of login"
            case .invalidClient: "the server does not know the client: check `client_id` and its secret"
            case .invalidGrant: "the server did not take what the login brought: sign in again"
            case .invalidRequest: "the server did not understand the login: check `redirect_uri` and `params`"
            case .invalidTarget: "the server does not know the resource: check `resource` and `audience`"
            case .serverError, .temporarilyUnavailable: "the server is out of order: try again later"
            default: "the server refused the login"
            }
        return "\(meaning) (\(error))"
    }
}
