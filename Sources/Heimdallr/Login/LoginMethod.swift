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
