import Synchronization

/// An access token in use. Copies share one constant storage. Prints as `<redacted>`.
public struct AccessToken: Sendable, Redacted {
    private let storage: Storage

    private final class Storage: Sendable {
        let value: Secret
        let type: String
        let issuedAt: ContinuousClock.Instant
        let expiresAt: ContinuousClock.Instant
        let refreshToken: Secret?
        let scope: [String]
        let members: SecretMembers
        let binding: DPoPKey?
        let certificate: UInt64?
        let generation: UInt64
        let wasAccepted = Atomic<Bool>(false)

        init(
            value: Secret, type: String, issuedAt: ContinuousClock.Instant, expiresAt: ContinuousClock.Instant,
            refreshToken: Secret?, scope: [String], members: SecretMembers, binding: DPoPKey?,
            certificate: UInt64?
        ) {
            self.value = value
            self.type = type
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
            self.refreshToken = refreshToken
            self.scope = scope
            self.members = members
            self.binding = binding
            self.certificate = certificate
            generation = Self.generations.add(1, ordering: .relaxed).newValue
        }

        private static let generations = Atomic<UInt64>(0)
    }

    /// For tests and authenticators. Each call makes a new `generation`.
    public init(
        value: Secret, type: String = "Bearer", issuedAt: ContinuousClock.Instant, expiresAt: ContinuousClock.Instant,
        refreshToken: Secret? = nil, scope: [String] = [], extra: [String: JSONValue] = [:]
    ) {
        self.init(
            value: value, type: type, issuedAt: issuedAt, expiresAt: expiresAt, refreshToken: refreshToken,
            scope: scope, members: SecretMembers(extra))
    }

    init(
        value: Secret, type: String = "Bearer", issuedAt: ContinuousClock.Instant, expiresAt: ContinuousClock.Instant,
        refreshToken: Secret?, scope: [String], members: SecretMembers, binding: DPoPKey? = nil,
        certificate: UInt64? = nil
    ) {
        storage = Storage(
            value: value, type: type, issuedAt: issuedAt, expiresAt: expiresAt, refreshToken: refreshToken,
            scope: scope, members: members, binding: binding, certificate: certificate)
    }

    /// The token itself: bytes from 0x21 to 0x7E only, so that it can't end a header line.
    public var value: Secret { storage.value }
    /// The scheme to present it with: `Bearer` or `DPoP`, however the server spelt it.
    public var type: String { storage.type }
    /// The key for the proof on each request (RFC 9449); `nil`: a bearer token.
    public var binding: DPoPKey? { storage.binding }
    /// Number of the client certificate that it is bound to (RFC 8705 section 3); `nil`: of none.
    package var certificate: UInt64? { storage.certificate }
    /// When the token was asked for. Its life counts from here.
    public var issuedAt: ContinuousClock.Instant { storage.issuedAt }
    /// When the token expires; it must not be used from then on.
    public var expiresAt: ContinuousClock.Instant { storage.expiresAt }
    /// The refresh token that was valid when this token came, the server's new one or the old one kept.
    public var refreshToken: Secret? { storage.refreshToken }
    /// The granted scope: the answer's, or else the one asked for.
    public var scope: [String] { storage.scope }
    /// The answer's other members. Each call parses the answer, so that secret values don't stay in memory.
    public var extra: [String: JSONValue] { members.values }
    var members: SecretMembers { storage.members }
    /// A number that no other token of this process has; a later token has a higher one. For caches.
    public var generation: UInt64 { storage.generation }

    /// Whether a resource has accepted it at least once.
    public var wasAccepted: Bool { storage.wasAccepted.load(ordering: .relaxed) }

    /// Reports another answer than 401. Tokens that are refused without ever being accepted point to a wrong audience: new ones
    /// are then fetched less often. Any thread, as often as you like.
    public func noteAccepted() {
        if !wasAccepted { storage.wasAccepted.store(true, ordering: .relaxed) }
    }

    /// Whether the token has expired at this time.
    public func isExpired(at now: ContinuousClock.Instant) -> Bool { now >= storage.expiresAt }
}

/// Tokens with the same content are equal, whatever their `generation`.
extension AccessToken: Equatable {
    public static func == (one: AccessToken, other: AccessToken) -> Bool {
        one.storage === other.storage
            || one.value == other.value && one.type == other.type && one.issuedAt == other.issuedAt
                && one.expiresAt == other.expiresAt && one.refreshToken == other.refreshToken
                && one.scope == other.scope && one.members == other.members
    }
}
