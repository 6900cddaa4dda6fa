import Heimdallr

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

    func grant(_ secret: ClientSettings.GrantType.Secrets) -> TokenExchangeGrant {
        let type = TokenExchangeGrant.TokenType(rawValue: subjectType)
        let subject: TokenExchangeGrant.Token =
            switch self.subject {
            case .secret(let source): .init(secret(source), type: type)
            case .caller: .caller(type: type)
            }
        return TokenExchangeGrant(
            subject: subject, actor: actor.map { .init(secret($0), type: .init(rawValue: actorType)) },
            requestedTokenType: requestedType.map { .init(rawValue: $0) })
    }
}
