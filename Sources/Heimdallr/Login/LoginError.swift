/// Reason why a login failed. Nothing has then changed. The text says what to do and contains no secret.
public enum LoginError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The client's grant has no login of this kind, or the login belongs to another client.
    case wrongMethod
    /// The redirect URI is relative, has a fragment, is http to another host, or has a reserved query parameter.
    case badRedirectURI
    /// A `client_id` that a person entered, or its secret, is empty, too long, or has characters that can't be sent.
    case badClient
    /// An endpoint is neither configured nor in the server's metadata. Value: its name (`authorization_endpoint`, …).
    case noEndpoint(String)
    /// The documents of the API or of the server can't be used, or no client is available at the server.
    case discovery(DiscoveryFault)
    /// The redirected URL is not the redirect URI.
    case foreignRedirect
    /// The redirected URL can't be read: a repeated parameter, an incomplete escape, or neither a code nor an error.
    case malformedRedirect
    /// The answer's `state` is not that of this login: RFC 6749 section 10.12.
    case wrongState
    /// The answer came from a browser that did not begin the login.
    case foreignBrowser
    /// The answer's `iss` names another server, or is missing though this server always sends `iss`: RFC 9207.
    case wrongIssuer
    /// The person took too long.
    case expired
    /// The server refused, at the browser or at an endpoint, with this error.
    case refused(OAuthError)
    /// The server refused the pushed request (RFC 9126), so the browser did not open its page. Value: the error.
    case pushRefused(OAuthError)
    /// A request to the server failed, or its answer can't be used.
    case endpoint(TokenEndpointFault)
    /// The id token was refused.
    case idToken(IDTokenFault)
    /// The client's server, account, `client_id`, resource or scope has changed since the login began.
    case reconfigured
    /// Another login or a logout of this client happened during this login.
    case overtaken
    /// The waiting task was cancelled.
    case cancelled
    /// `Heimdallr.shutdown()` was called.
    case stopped
    /// The system provided no random numbers, so nothing was sent.
    case noRandomness
    /// The API's or its server's documents have changed since the person agreed. Value: the changed parts of the offer.
    case offerChanged([SignInOffer.Part])
    /// A pushed request is required (RFC 9126), but would expire before the person opens the address.
    case pushingRequired

    public var description: String {
        switch self {
        case .wrongMethod: "this client's grant type has no login of this kind"
        case .badRedirectURI:
            "the redirect URI can't be used: write an absolute URI without a fragment, https:// or on loopback"
        case .badClient: "the client_id or its secret is empty, too long, or has characters outside ASCII"
        case .noEndpoint(Endpoint.keys.rawValue): DiscoveryFault.missing(Endpoint.keys.rawValue).description
        case .noEndpoint(let name):
            "the \(name) is not known: configure it, or configure an issuer whose metadata names it"
        case .discovery(let fault): fault.description
        case .foreignRedirect:
            "this is not the redirect address of this login: paste the whole address of the page to which the server "
                + "sent the browser"
        case .malformedRedirect: "the redirect address has unreadable parameters: sign in again"
        case .wrongState: "the answer does not belong to this login: sign in again, and use the answer of that sign-in"
        case .foreignBrowser: "the answer came from another browser: sign in again, and stay in one browser"
        case .wrongIssuer: "the answer comes from another server than this login uses: nothing was sent to it"
        case .expired: "the login took too long: sign in again"
        case .refused(let error): Self.sentence(for: error)
        case .pushRefused(let error): "the server refused the pushed authorization request (PAR): \(error)"
        case .endpoint(let fault): "the server gave no token: \(fault)"
        case .idToken(let fault): "the server's id token was refused: \(fault)"
        case .reconfigured:
            "the login began with another server, client_id, resource or scope than this client has now: sign in again"
        case .overtaken: "another login or a logout of this client was faster"
        case .cancelled: "the login was cancelled"
        case .stopped: "this client has been shut down"
        case .noRandomness: "the system provided no random numbers: nothing was sent"
        case .offerChanged: "the API or its server has changed since the offer was shown: look at the new offer"
        case .pushingRequired:
            "the request has to be pushed (`par: required`, or the server's metadata), and would expire before a "
                + "printed address is opened: sign in at the page"
        }
    }

    private static func sentence(for error: OAuthError) -> String {
        let meaning =
            switch error.code {
            case .accessDenied: "the sign-in was refused"
            case .invalidScope: "the server does not grant this scope: check `scope`"
            case .unauthorizedClient: "the server does not allow this client to use this kind of login"
            case .unsupportedResponseType, .unsupportedGrantType: "the server does not support this kind of login"
            case .invalidClient: "the server does not know the client: check `client_id` and its secret"
            case .invalidGrant: "the server did not accept the login's code or password: sign in again"
            case .invalidRequest: "the server did not understand the login request: check `redirect_uri` and `params`"
            case .invalidTarget: "the server does not know the resource: check `resource` and `audience`"
            case .serverError, .temporarilyUnavailable: "the server is out of order: try again later"
            default: "the server refused the login"
            }
        return "\(meaning) (\(error))"
    }
}
