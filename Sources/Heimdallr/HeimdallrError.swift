/// Reason why there is no token. Wait after `tokenEndpointUnavailable`, check the configuration after `clientRefused`,
/// and log in after `needsAuthentication`. The text contains no secret.
public enum HeimdallrError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The token endpoint is unreachable or sends no usable response. The next attempt begins after `retryAfter`.
    case tokenEndpointUnavailable(TokenEndpointFault, retryAfter: Duration)
    /// The token endpoint refuses this client, or the client's secret is unavailable. Retries are less frequent.
    case clientRefused(TokenEndpointFault, retryAfter: Duration)
    /// The resource refused several new tokens: probably a wrong audience or scope. A new token waits for `retryAfter`.
    case rejectedByResource(retryAfter: Duration)
    /// A person has to log in, or an operator has to configure a new refresh token.
    case needsAuthentication
    /// The caller's deadline has passed. The token request goes on.
    case deadlineExceeded(retryAfter: Duration)
    /// The caller's task was cancelled. The token request goes on.
    case cancelled
    /// `shutdown()` was called.
    case stopped

    /// Time to wait before the next try; `nil` if waiting does not help.
    public var retryAfter: Duration? {
        switch self {
        case .tokenEndpointUnavailable(_, let duration), .clientRefused(_, let duration),
            .rejectedByResource(let duration), .deadlineExceeded(let duration):
            duration
        case .needsAuthentication, .cancelled, .stopped: nil
        }
    }

    /// Whether a fault of the store or of a secret kept the client from sending a request.
    package var wasNotSent: Bool {
        switch self {
        case .tokenEndpointUnavailable(let fault, _), .clientRefused(let fault, _):
            switch fault {
            case .store, .secret: true
            default: false
            }
        default: false
        }
    }

    public var description: String {
        switch self {
        case .tokenEndpointUnavailable(let fault, _) where wasNotSent, .clientRefused(let fault, _) where wasNotSent:
            "no token was requested: \(fault)"
        case .tokenEndpointUnavailable(let fault, _): "the token endpoint gives no token: \(fault)"
        case .clientRefused(let fault, _): "the token endpoint refuses this client: \(fault)"
        case .rejectedByResource: "the resource refuses this client's tokens: check audience, resource and scope"
        case .needsAuthentication: "somebody has to sign in first"
        case .deadlineExceeded: "no token came in time"
        case .cancelled: "the wait for a token was cancelled"
        case .stopped: "this client has been shut down"
        }
    }
}

/// Fault of one request to the authorization server. The text contains no secret.
public enum TokenEndpointFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// No response was received.
    case network(HeimdallrHTTPClientError)
    /// The response has this error status, and no OAuth error. Value: the server's words, if any, made safe to show.
    case status(Int, String? = nil)
    /// A web page answered with this error status: a firewall, a gateway or a login page in between.
    case webPage(Int)
    /// The server limits the rate of requests. The response has this status.
    case limited(Int, OAuthError?)
    /// The response is a redirect with this status. It is not followed, because a redirect could leak credentials.
    case redirect(Int)
    /// The response has a success status, but an unusable body.
    case answer(TokenResponseError)
    /// The server refused the request: RFC 6749 section 5.2.
    case refused(OAuthError)
    /// The request was not sent, because one of the client's secrets is unavailable.
    case secret(SecretProviderError)
    /// The request was not sent, because the client's record in the store is in use or unavailable.
    case store(TokenStoreError)
    /// The request was not sent, because its address was not found in the server's metadata.
    case discovery(DiscoveryFault)
    /// The HTTP client did not return within its timeout. The request was given up.
    case stuck

    public var description: String {
        switch self {
        case .network(let error): error.description
        case .status(let status, nil): "it answered \(status) without an OAuth error"
        case .status(let status, let words?): "it answered \(status): \(words)"
        case .webPage(let status):
            "a firewall or a web page in between answered \(status), not the authorization server"
        case .limited(let status, nil): "it limits the rate of requests (\(status))"
        case .limited(let status, let error?): "it limits the rate of requests (\(status)): \(error)"
        case .redirect(let status): "it answered with a redirect (\(status)), which is not followed: check its address"
        case .answer(let error): error.description
        case .refused(let error): error.description
        case .secret(let error): error.description
        case .store(let error): error.description
        case .discovery(let fault): fault.description
        case .stuck: "the token request did not end in time"
        }
    }

    /// Whether the server names the scope as the fault, by the protocol's word or in its own words.
    var blamesScope: Bool {
        switch self {
        case .refused(let error) where error.code != .invalidGrant:
            error.code == .invalidScope || error.detail?.lowercased().contains("scope") ?? false
        case .status(_, let words?): words.lowercased().contains("scope")
        default: false
        }
    }

    /// Whether the server misses a scope in a request that had none (Entra ID: AADSTS900144).
    var missesScope: Bool {
        if case .refused(let error) = self { error.missesScope } else { false }
    }

    /// Whether the fault probably lasts until an operator repairs it. Requests are then retried less often.
    package var looksPermanent: Bool {
        switch self {
        case .network, .store, .discovery, .stuck, .limited: false
        case .status(let status, _): !(status >= 500 || [408, 429].contains(status))
        case .redirect, .secret, .webPage: true
        case .answer(let error):
            switch error {
            case .noTokenType, .unknownTokenType, .notBound, .notAnAccessToken, .badAccessToken, .badRefreshToken: true
            case .emptyBody, .notJSON, .foreign, .notAnObject, .noAccessToken, .noMember, .alreadyExpired: false
            }
        case .refused(let error):
            !([.serverError, .temporarilyUnavailable, .slowDown].contains(error.code) || error.status >= 500
                || [408, 429].contains(error.status))
        }
    }
}
