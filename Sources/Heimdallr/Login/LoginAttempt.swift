/// A begun login at a browser. Used once: remove it before `Heimdallr.finishLogin(_:redirectedTo:)`, and bind it to the
/// browser that began. Prints as `<redacted>`.
public struct LoginAttempt: Sendable, Redacted {
    /// The name of the client: `Heimdallr.name`.
    public let client: String
    /// Where the person's browser has to go.
    public let url: String
    /// The value that the server returns (RFC 6749 section 10.12). Known only to this process, the browser and the server.
    public let state: String
    /// Where the server sends the browser afterwards, byte for byte as it was told.
    public let redirectURI: String
    /// When the attempt expires; an answer that comes later is refused.
    public let expiresAt: ContinuousClock.Instant

    let expectation: Expectation

    /// Requirements for the answer, fixed when the login began.
    struct Expectation: Sendable {
        var method: LoginMethod
        /// Exactly this one, where it is known: RFC 9207.
        var issuer: String?
        var requiresIssuer = false
        /// `Enrolment.digest`; `nil`: the configuration names the server. Otherwise the text of a response without `iss` is not
        /// shown.
        var enrolment: String?
        /// RFC 7636; `nil` for the implicit grant.
        var verifier: Secret?
        /// OpenID Connect, where an id token is expected.
        var nonce: String?
        /// Record of the client that began it. A client with another one has another server or account.
        var record = ""
        /// The endpoint for the code, fixed when the browser left, so that no later answer redirects the code.
        var tokenEndpoint: String
    }
}

/// How a person gives a client its first token.
public enum LoginMethod: String, Sendable, Hashable, CaseIterable {
    /// At a browser: authorization code with PKCE (RFC 6749 section 4.1, RFC 7636).
    case browser
    /// At a browser, with the token in the address: RFC 6749 section 4.2. Needs `allowDeprecated`.
    case implicit
    /// On another device, where the person types in a code: RFC 8628.
    case device
    /// With a user name and a password, sent once: RFC 6749 section 4.3. Needs `allowDeprecated`.
    case password
}
