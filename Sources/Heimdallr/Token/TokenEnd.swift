internal import Cryptography
internal import WireText

/// Source of an access token's end.
public enum TokenEnd: String, Sendable, Hashable, CaseIterable {
    /// The lifetime in the server's answer.
    case stated
    /// The default lifetime, because the answer has none: `HeimdallrConfiguration.defaultExpiresIn`.
    case usual = "default"
    /// `exp` of the token, which is a JWT. It is not verified, and can only shorten the default.
    case jwt
    /// The configured lifetime, which replaces the server's: `HeimdallrConfiguration.tokenLifetime`.
    case configured
    /// No end is known. The token serves until a resource refuses it.
    case open = "none"

    /// The source in words, for people.
    package var inWords: String {
        switch self {
        case .stated: "stated by the server"
        case .usual: "by default_expires_in, because the server states no end"
        case .jwt: "by the token, a JWT, because the server states no end"
        case .configured: "by token_lifetime"
        case .open: "no known end: it serves until an API refuses it"
        }
    }

    /// Returns the seconds until `exp`, if the token is a readable JWT. The signature is not checked.
    static func secondsLeft(of token: Secret, wallClock: Int64) -> Double? {
        guard case .number(let text)? = claims(of: token)?["exp"]?.value, let end = Double(text), end.isFinite else {
            return nil
        }
        return end - Double(wallClock)
    }

    /// Returns the claims of a readable JWT. The signature is not checked.
    static func claims(of token: Secret) -> [String: JSONParser.Member]? {
        token.withSpan { span -> [String: JSONParser.Member]? in
            guard let first = span.indices.first(where: { span[$0] == ASCII.dot }),
                let second = span.indices.dropFirst(first + 1).first(where: { span[$0] == ASCII.dot })
            else { return nil }
            var payload = SecretWriter(capacity: second - first)
            let isBase64 = Base64.decode(span.extracting((first + 1)..<second), as: .url) { payload.append($0) }
            guard isBase64 else { return nil }
            return payload.withSpan { try? JSONParser.members($0) }
        }
    }
}

extension AccessToken {
    /// Returns the time until the token expires; `nil`: no end is known.
    func left(at now: ContinuousClock.Instant) -> Duration? { endsBy == .open ? nil : now.duration(to: expiresAt) }
}
