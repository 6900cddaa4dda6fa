/// Why there is no token. Whose fault it is decides what to do:
/// `tokenEndpointUnavailable` passes by itself, `clientRefused` wants somebody to look at the configuration,
/// `needsAuthentication` wants somebody to log in.
public enum HeimdallrError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The token endpoint can't be reached or does not give a usable answer. The next attempt is due in `retryAfter`.
    case tokenEndpointUnavailable(TokenEndpointFault, retryAfter: Duration)
    /// The token endpoint refuses this client, or its secret can't be had. Tried again, but less often.
    case clientRefused(TokenEndpointFault, retryAfter: Duration)
    /// The protected resource refused the last tokens on their first use: wrong audience or scope, most likely.
    case rejectedByResource(retryAfter: Duration)
    /// Somebody has to log in, or to hand in a new refresh token.
    case needsAuthentication
    /// The caller's own deadline passed while a token request was under way.
    case deadlineExceeded(retryAfter: Duration)
    /// The caller's task was cancelled; the token request goes on.
    case cancelled
    /// `shutdown()` was called.
    case stopped

    /// When it makes sense to ask again; `nil` where waiting does not help.
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

/// What went wrong with one token request.
public enum TokenEndpointFault: Error, Sendable, Hashable, CustomStringConvertible {
    case network(HeimdallrHTTPClientError)
    /// An error status without an OAuth error.
    case status(Int)
    /// Never followed: a credential would go where nobody said it should.
    case redirect(Int)
    /// A success status with a body that is of no use.
    case answer(TokenResponseError)
    case refused(OAuthError)
    /// The request was not sent: a secret of ours could not be had.
    case secret(SecretProviderError)
    /// The request was not sent: another process works with this client's record.
    case store(TokenStoreError)
    /// The request was not sent: the server's metadata does not say where to.
    case discovery(DiscoveryFault)
    /// The HTTP client did not return within its own timeout and was given up.
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

    /// It looks as if only somebody can mend it; tried again all the same.
    public var looksPermanent: Bool {
        switch self {
        case .network, .store, .discovery, .stuck: false
        case .status(let status): !(status >= 500 || status == 429 || status == 408)
        case .redirect, .secret: true
        case .answer(let error):
            switch error {
            case .noTokenType, .unknownTokenType, .badAccessToken, .badRefreshToken: true
            case .emptyBody, .notJSON, .notAnObject, .noAccessToken, .alreadyExpired: false
            }
        case .refused(let error):
            !(error.code == .serverError || error.code == .temporarilyUnavailable || error.status >= 500
                || error.status == 429 || error.status == 408)
        }
    }
}
