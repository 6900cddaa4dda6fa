import Synchronization

/// An access token in use. A reference to immutable storage: passing it on costs one retain. Prints as `<redacted>`.
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
        let generation: UInt64
        let wasAccepted = Atomic<Bool>(false)

        init(
            value: Secret, type: String, issuedAt: ContinuousClock.Instant, expiresAt: ContinuousClock.Instant,
            refreshToken: Secret?, scope: [String], members: SecretMembers
        ) {
            self.value = value
            self.type = type
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
            self.refreshToken = refreshToken
            self.scope = scope
            self.members = members
            generation = Self.generations.add(1, ordering: .relaxed).newValue
        }

        private static let generations = Atomic<UInt64>(0)
    }

    /// Each call makes a new generation.
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
        refreshToken: Secret?, scope: [String], members: SecretMembers
    ) {
        storage = Storage(
            value: value, type: type, issuedAt: issuedAt, expiresAt: expiresAt, refreshToken: refreshToken,
            scope: scope, members: members)
    }

    /// Octets 0x21–0x7E only, so that it can't end a header line.
    public var value: Secret { storage.value }
    /// The scheme to present it with: `Bearer`, however the server spelt it.
    public var type: String { storage.type }
    /// When it was asked for.
    public var issuedAt: ContinuousClock.Instant { storage.issuedAt }
    /// From here on it must not be used.
    public var expiresAt: ContinuousClock.Instant { storage.expiresAt }
    /// The refresh token that was valid when this token came, the server's new one or the old one kept.
    public var refreshToken: Secret? { storage.refreshToken }
    /// What was granted: the answer's scope, or else what was asked for.
    public var scope: [String] { storage.scope }
    /// The answer's other members. Read anew each time, so that no value stays in memory that may be secret.
    public var extra: [String: JSONValue] { members.values }
    var members: SecretMembers { storage.members }
    /// Unique in this process and growing: which issue of a token this is, for caches and `Heimdallr.reject(_:)`.
    public var generation: UInt64 { storage.generation }

    /// The resource has taken it at least once.
    public var wasAccepted: Bool { storage.wasAccepted.load(ordering: .relaxed) }

    /// The resource took it: it answered something else than 401. A token that is refused without ever having been
    /// accepted points to a wrong audience or scope, and makes the life cycle ask for new ones less often.
    public func noteAccepted() {
        if !wasAccepted { storage.wasAccepted.store(true, ordering: .relaxed) }
    }

    public func isExpired(at now: ContinuousClock.Instant) -> Bool { now >= storage.expiresAt }
}

/// By value: two tokens with the same content are equal, whichever generation they are.
extension AccessToken: Equatable {
    public static func == (one: AccessToken, other: AccessToken) -> Bool {
        one.storage === other.storage
            || one.value == other.value && one.type == other.type && one.issuedAt == other.issuedAt
                && one.expiresAt == other.expiresAt && one.refreshToken == other.refreshToken
                && one.scope == other.scope && one.members == other.members
    }
}
