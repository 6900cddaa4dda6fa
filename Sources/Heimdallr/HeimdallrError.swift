/// Reason why there is no token. Wait after `tokenEndpointUnavailable`, check the configuration after `clientRefused`, log
/// in after `needsAuthentication`. The text holds no secret.
public enum HeimdallrError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The token endpoint can't be reached or gives no usable answer. The next attempt is made after `retryAfter`.
    case tokenEndpointUnavailable(TokenEndpointFault, retryAfter: Duration)
    /// The token endpoint refuses this client, or its secret is unavailable. The next attempt is after a longer `retryAfter`.
    case clientRefused(TokenEndpointFault, retryAfter: Duration)
    /// The resource refused several new tokens: probably a wrong audience or scope. No token request before `retryAfter`.
    case rejectedByResource(retryAfter: Duration)
    /// Somebody has to log in, or to hand in a new refresh token.
    case needsAuthentication
    /// The time that the caller wanted to wait is over; the token request goes on.
    case deadlineExceeded(retryAfter: Duration)
    /// The caller's task was cancelled; the token request goes on.
    case cancelled
    /// `shutdown()` was called.
    case stopped

    /// How long to wait before it makes sense to ask again; `nil` where waiting does not help.
    public var retryAfter: Duration? {
        switch self {
        case .tokenEndpointUnavailable(_, let duration), .clientRefused(_, let duration),
            .rejectedByResource(let duration), .deadlineExceeded(let duration):
            duration
        case .needsAuthentication, .cancelled, .stopped: nil
        }
    }

    public var description: String {
        switch self {
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

/// Fault of one request to the authorization server. The text holds no secret.
public enum TokenEndpointFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// No answer came.
    case network(HeimdallrHTTPClientError)
    /// The answer has this error status, and no OAuth error in it.
    case status(Int)
    /// The answer is a redirect with this status. None is followed, to keep the credentials at the configured address.
    case redirect(Int)
    /// The answer has a success status and a body that can't be used.
    case answer(TokenResponseError)
    /// The server refused the request: RFC 6749 section 5.2.
    case refused(OAuthError)
    /// The request was not sent: one of the client's secrets is unavailable.
    case secret(SecretProviderError)
    /// The request was not sent: another process works with this client's record.
    case store(TokenStoreError)
    /// The request was not sent: its address was to come from the server's metadata, which can't be used.
    case discovery(DiscoveryFault)
    /// The HTTP client did not return within its own timeout. No caller waits for it any more.
    case stuck

    public var description: String {
        switch self {
        case .network(let error): error.description
        case .status(let status): "it answered \(status) without an OAuth error"
        case .redirect(let status): "it answered with a redirect (\(status)), which is not followed: check its address"
        case .answer(let error): error.description
        case .refused(let error): error.description
        case .secret(let error): error.description
        case .store(let error): error.description
        case .discovery(let fault): fault.description
        case .stuck: "the token request did not end in time"
        }
    }

    /// Whether the fault will most likely last until an operator repairs it. Requests are still repeated, less often.
    package var looksPermanent: Bool {
        switch self {
        case .network, .store, .discovery, .stuck: false
        case .status(let status): !(status >= 500 || status == 429 || status == 408)
        case .redirect, .secret: true
        case .answer(let error):
            switch error {
            case .noTokenType, .unknownTokenType, .notBound, .notAnAccessToken, .badAccessToken, .badRefreshToken: true
            case .emptyBody, .notJSON, .notAnObject, .noAccessToken, .alreadyExpired: false
            }
        case .refused(let error):
            !(error.code == .serverError || error.code == .temporarilyUnavailable || error.status >= 500
                || error.status == 429 || error.status == 408)
        }
    }
}
