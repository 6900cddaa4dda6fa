import Heimdallr

/// What somebody can do about a client that has no token. Fixed sentences.
enum Advice {
    static func sentence(for error: HeimdallrError, signIn: SignIn) -> String {
        switch error {
        case .tokenEndpointUnavailable(let fault, _): sentence(for: fault)
        case .clientRefused(let fault, _): sentence(for: fault)
        case .rejectedByResource: "compare this client's audience, resource and scope with what the API wants"
        case .needsAuthentication: signIn.advice
        case .deadlineExceeded: "wait; the token endpoint is slow"
        case .cancelled, .stopped: "nothing; the proxy is stopping"
        }
    }

    private static func sentence(for fault: TokenEndpointFault) -> String {
        switch fault {
        case .network(let error):
            switch error {
            case .dns: "check the host name in token_endpoint, and name resolution"
            case .tls: "check the server's certificate, and tls.ca_file"
            case .connect: "check that the token endpoint runs and can be reached from here"
            case .timeout: "check that the token endpoint answers in time; `timeout` says how long it may take"
            case .bodyTooLarge, .other: "check that token_endpoint is the address of a token endpoint"
            }
        case .status(let status) where status >= 500 || status == 429: "wait; it is tried again by itself"
        case .status, .redirect, .answer: "check that token_endpoint is the address of a token endpoint"
        case .refused(let error): sentence(for: error.code)
        case .secret: "put the secret where the configuration says it is"
        case .store: "check the store directory, and which other process uses it"
        case .discovery:
            "check `issuer`, and that its server can be reached from here; or write the endpoints themselves"
        case .stuck: "wait; it is tried again by itself"
        }
    }

    private static func sentence(for code: OAuthError.Code) -> String {
        switch code {
        case .invalidClient: "check client_id, client_secret and token_endpoint_auth_method"
        case .invalidGrant: "check the user name and password, or hand in a new refresh token"
        case .invalidScope: "check `scope`"
        case .unauthorizedClient, .unsupportedGrantType: "allow this grant type for the client at the server"
        case .serverError, .temporarilyUnavailable: "wait; it is tried again by itself"
        default: "compare this client's settings with what the authorization server wants"
        }
    }
}

extension HeimdallrStatus.State {
    var inWords: String {
        switch self {
        case .starting: "starting"
        case .ready: "has a valid token"
        case .fetching: "is getting a token"
        case .idle: "has no token; the next request gets one"
        case .backingOff: "has no token; waits before it asks again"
        case .needsAuthentication: "needs somebody to sign in"
        case .stopped: "stopped"
        }
    }
}
