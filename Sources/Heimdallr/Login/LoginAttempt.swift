/// A login at a browser that has begun. To be used once: whoever holds it takes it out of reach before `finishLogin`.
/// Prints as `<redacted>`.
public struct LoginAttempt: Sendable, Redacted {
    /// The client's name.
    public let client: String
    /// Where the person's browser goes.
    public let url: String
    /// What the server has to send back. A secret between this process, the browser and the server.
    public let state: String
    /// Where the server sends the browser afterwards, as it was sent.
    public let redirectURI: String
    /// From here on it is refused.
    public let expiresAt: ContinuousClock.Instant

    let expectation: Expectation

    /// What the answer must fit, decided when the login began.
    struct Expectation: Sendable {
        var method: LoginMethod
        /// Exactly this one, where it is known: RFC 9207.
        var issuer: String?
        var requiresIssuer = false
        /// RFC 7636; `nil` for the implicit grant.
        var verifier: Secret?
        /// OpenID Connect, where an id token is expected.
        var nonce: String?
        /// Where the code goes: what was known when the browser was sent away, so that no later answer redirects it.
        var tokenEndpoint: String
    }
}
