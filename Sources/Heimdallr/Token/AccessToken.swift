import Synchronization

/// An access token in use. Copies share one immutable storage. Prints as `<redacted>`.
public struct AccessToken: Sendable, Redacted {
    private let storage: Storage

    private final class Storage: Sendable {
        let content: Content
        let generation = generations.add(1, ordering: .relaxed).newValue
        let wasAccepted = Atomic<Bool>(false)

        init(_ content: Content) { self.content = content }

        private static let generations = Atomic<UInt64>(0)
    }

    struct Content: Sendable, Equatable {
        var value: Secret
        var type = "Bearer"
        var issuedAt: ContinuousClock.Instant
        var expiresAt: ContinuousClock.Instant
        var refreshToken: Secret?
        var scope: [String]
        var members: SecretMembers
        @Uncompared var binding: DPoPKey? = nil
        @Uncompared var certificate: UInt64? = nil
        @Uncompared var endsBy = TokenEnd.stated
    }

    /// For tests and authenticators. Each call makes a new `generation`.
    public init(
        value: Secret, type: String = "Bearer", issuedAt: ContinuousClock.Instant, expiresAt: ContinuousClock.Instant,
        refreshToken: Secret? = nil, scope: [String] = [], extra: [String: JSONValue] = [:]
    ) {
        self.init(
            Content(
                value: value, type: type, issuedAt: issuedAt, expiresAt: expiresAt, refreshToken: refreshToken,
                scope: scope, members: SecretMembers(extra)))
    }

    init(_ content: Content) { storage = Storage(content) }

    /// The token itself: bytes from 0x21 to 0x7E only, so that it can't end a header line.
    public var value: Secret { storage.content.value }
    /// The `Authorization` scheme for this token: `Bearer` or `DPoP`. The server's spelling does not matter.
    public var type: String { storage.content.type }
    /// The key for the proof on each request (RFC 9449); `nil`: a bearer token.
    public var binding: DPoPKey? { storage.content.binding }
    /// Fingerprint of the client certificate that the token is bound to (RFC 8705 section 3); `nil`: none.
    package var certificate: UInt64? { storage.content.certificate }
    /// Time at which the token was requested. Its lifetime counts from this time.
    public var issuedAt: ContinuousClock.Instant { storage.content.issuedAt }
    /// Time at which the token expires. The token must not be used from this time on.
    public var expiresAt: ContinuousClock.Instant { storage.content.expiresAt }
    /// Source of `expiresAt`. With `.open` no end is known, and `expiresAt` is decades away.
    public var endsBy: TokenEnd { storage.content.endsBy }
    /// The refresh token of the same answer, or else the former refresh token.
    public var refreshToken: Secret? { storage.content.refreshToken }
    /// The granted scope: that of the answer, or else the requested scope.
    public var scope: [String] { storage.content.scope }
    /// Other members of the answer. Each access parses their text again, so that secret values don't stay in memory.
    public var extra: [String: JSONValue] { members.values }
    var members: SecretMembers { storage.content.members }
    /// A number that is unique in this process and higher for each later token. Useful as a cache key.
    public var generation: UInt64 { storage.generation }

    /// Whether a resource has accepted this token at least once.
    public var wasAccepted: Bool { storage.wasAccepted.load(ordering: .relaxed) }

    /// Reports a response other than 401. If resources refuse several tokens before accepting one, the audience may be
    /// wrong, and new tokens are fetched less often. May be called on any thread, and repeatedly.
    public func noteAccepted() { if !wasAccepted { storage.wasAccepted.store(true, ordering: .relaxed) } }

    /// Whether the token has expired at this time.
    public func isExpired(at now: ContinuousClock.Instant) -> Bool { now >= expiresAt }
}

/// Tokens with the same content are equal, even with different values of `generation`.
extension AccessToken: Equatable {
    public static func == (one: AccessToken, other: AccessToken) -> Bool {
        one.storage === other.storage || one.storage.content == other.storage.content
    }
}
