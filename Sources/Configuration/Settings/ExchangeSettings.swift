/// Tokens to exchange: RFC 8693.
public struct ExchangeSettings: Sendable, Equatable {
    public enum Subject: Sendable, Equatable {
        case secret(SecretSource)
        /// The program's token in `Authorization: Bearer`.
        case caller
    }

    public var subject: Subject
    /// Types are URIs.
    public var subjectType: String
    public var actor: SecretSource?
    public var actorType: String
    public var requestedType: String?
}
