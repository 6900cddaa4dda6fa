import Heimdallr

/// Temporary keys of AWS, from its Security Token Service.
public struct AWSSettings: Sendable, Equatable {
    public enum Identity: Sendable, Equatable {
        case keys(id: SecretSource, secret: SecretSource, session: SecretSource?)
        case webIdentity(SecretSource)
    }

    public var identity: Identity
    public var region: String
    /// ARN of the role to take; `nil`: the keys' own session.
    public var role: String?
    public var sessionName = usualSessionName
    public var externalID: String?
    /// Wanted life of the keys; `nil`: AWS's default.
    public var duration: Duration?

    static let usualSessionName = "heimdallr"
    static let keys = [
        "region", "access_key_id", "secret_access_key", "session_token", "web_identity_token", "role_arn",
        "role_session_name", "external_id", "duration",
    ]

    /// STS of the region.
    var endpoint: String {
        "https://sts.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")/"
    }

    var secrets: [SecretSource] {
        switch identity {
        case .keys(let id, let secret, let session): [id, secret] + (session.map { [$0] } ?? [])
        case .webIdentity(let token): [token]
        }
    }

    func grant(_ secret: ClientSettings.GrantType.Secrets) -> AWSGrant {
        let identity: AWSGrant.Identity =
            switch self.identity {
            case .keys(let id, let key, let session):
                .keys(id: secret(id), secret: secret(key), session: session.map { secret($0) })
            case .webIdentity(let token): .webIdentity(secret(token))
            }
        return AWSGrant(
            identity, region: region, role: role, session: sessionName, externalID: externalID,
            seconds: duration.map { Int($0.components.seconds) })
    }
}
