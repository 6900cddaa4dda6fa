/// A login at a browser in progress. Bind it to the browser that began the login. Remove your copy before you call
/// `Heimdallr.finishLogin(_:redirectedTo:)`, so that only one answer counts. Prints as `<redacted>`.
public struct LoginAttempt: Sendable, Redacted {
    /// The name of the client: `Heimdallr.name`.
    public let client: String
    /// Address to open in the person's browser.
    public let url: String
    /// The `state` of the request (RFC 6749 section 10.12). Only this process, the browser and the server know it.
    public let state: String
    /// Redirect URI, byte for byte as it was sent to the server.
    public let redirectURI: String
    /// Expiry of the attempt. A later answer is refused.
    public let expiresAt: ContinuousClock.Instant

    let expectation: Expectation

    /// Requirements for the answer, fixed when the login began.
    struct Expectation: Sendable {
        var method: LoginMethod
        /// Required value of `iss` (RFC 9207); `nil`: unknown.
        var issuer: String?
        var requiresIssuer = false
        /// `Enrolment.digest`; `nil`: the configuration names the server. With an enrolment, even an error response
        /// without a required `iss` is refused.
        var enrolment: String?
        /// The PKCE verifier (RFC 7636); `nil` for the implicit grant.
        var verifier: Secret?
        /// The nonce of OpenID Connect; `nil`: no id token is expected.
        var nonce: String?
        /// Record name of the client when the login began. It depends on server, `client_id` and account.
        var record = ""
        /// The token endpoint for the code. Fixed when the login began, so that later metadata can't redirect the code.
        var tokenEndpoint: String
    }
}

/// Method by which a person gives a client its first token.
public enum LoginMethod: String, Sendable, Hashable, CaseIterable {
    /// At a browser: authorization code with PKCE (RFC 6749 section 4.1, RFC 7636).
    case browser
    /// At a browser, with the token in the address: RFC 6749 section 4.2. Needs `allowDeprecated`.
    case implicit
    /// On another device, where the person enters a code: RFC 8628.
    case device
    /// With a user name and a password, sent once: RFC 6749 section 4.3. Needs `allowDeprecated`.
    case password
}
