/// How a person gives a client its first token.
public enum LoginMethod: String, Sendable, Hashable, CaseIterable {
    /// Authorization code with PKCE: RFC 6749 section 4.1, RFC 7636.
    case browser
    /// RFC 6749 section 4.2, for servers that know nothing newer.
    case implicit
    /// RFC 8628.
    case device
    /// User name and password, asked for once and kept nowhere: RFC 6749 section 4.3.
    case password
}
