import Configuration
import Heimdallr

/// Finds the form of client assertion that a server takes, if it refuses the configured one. RFC 7523bis (draft) changes
/// audience and `typ`: some servers take only the new form, others only the old one.
struct AssertionTrial: Sendable {
    let settings: ClientSettings
    let make: @Sendable (ClientSettings) -> Heimdallr?

    /// The settings of each other form, beginning with the oldest and the newest one. Empty for a client that signs none.
    var others: [ClientSettings] {
        guard settings.signsClientAssertion, settings.auto == nil else { return [] }
        let audiences: [JWTAudience] =
            settings.issuer == nil ? [.tokenEndpoint] : [.tokenEndpoint, .issuer]
        let typs = ["JWT", OAuthClientAssertionCredentials.explicitType]
        let oldest = zip(audiences, typs).map { ($0, $1) }
        let mixed = zip(audiences, typs.reversed()).map { ($0, $1) }
        return (oldest + mixed).compactMap { audience, typ in
            guard audience != settings.clientAssertionAudience || typ != settings.clientAssertionTyp else { return nil }
            var other = settings
            (other.clientAssertionAudience, other.clientAssertionTyp) = (audience, typ)
            return other
        }
    }

    /// Requests a token with each other form. Returns advice that names the accepted form; `nil`: the server takes none.
    func advice() async -> String? {
        for other in others {
            guard let client = make(other) else { continue }
            defer { client.shutdown() }
            guard (try? await client.refreshedToken(waiting: settings.timeout + .seconds(3))) != nil else { continue }
            return "write \(Self.keys(of: other)): doctor has tried that, and the server takes it"
        }
        return nil
    }

    /// Returns the keys that choose the form, as they are written.
    static func keys(of settings: ClientSettings) -> String {
        let audience =
            switch settings.clientAssertionAudience {
            case .tokenEndpoint: "token_endpoint"
            case .issuer: "issuer"
            case .text(let text): text
            }
        return "`client_assertion_audience: \(audience)` and `client_assertion_typ: \(settings.clientAssertionTyp)`"
    }
}
