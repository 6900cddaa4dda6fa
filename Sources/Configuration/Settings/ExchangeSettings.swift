/// Tokens for a token exchange (RFC 8693).
public struct ExchangeSettings: Sendable, Equatable {
    public enum Subject: Sendable, Equatable {
        case secret(SecretSource)
        /// The program's own token, in `Authorization: Bearer`.
        case caller
    }

    public var subject: Subject
    /// Type of the subject token, a URI.
    public var subjectType: String
    public var actor: SecretSource?
    public var actorType: String
    public var requestedType: String?
}
