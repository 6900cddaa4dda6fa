/// Who signed in, and what says so. Stays when the tokens are refreshed.
public struct SignIn: Sendable, Equatable, Redacted {
    /// Verified when it came.
    public var idToken: Secret?
    /// From the id token's claims. Printable, at most 256 characters.
    public var name: String?

    public init(idToken: Secret? = nil, name: String? = nil) {
        self.idToken = idToken
        self.name = name
    }
}

/// What is kept of a client between runs. Times are seconds since 1970-01-01T00:00:00Z: a monotonic clock does not
/// survive the process.
public struct TokenRecord: Sendable, Equatable, Redacted {
    /// Grows with every change; of two records the higher one is the later.
    public var revision: UInt64
    public var accessToken: Secret?
    public var issuedAt: Int64
    public var expiresAt: Int64
    public var refreshToken: Secret?
    public var scope: [String]
    /// The answer's other members. Read anew each time, so that no value stays in memory that may be secret.
    public var extra: [String: JSONValue] {
        get { members.values }
        set { members = SecretMembers(newValue) }
    }
    var members = SecretMembers()
    /// `nil`: nobody has signed in.
    public var signIn: SignIn?
    /// `nil`: the server has not said how long the refresh token lives.
    public var refreshTokenLife: RefreshTokenLife?

    /// From when to when a refresh token is good.
    public struct RefreshTokenLife: Sendable, Equatable {
        public var issuedAt: Int64
        public var expiresAt: Int64

        public init(issuedAt: Int64, expiresAt: Int64) {
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
        }
    }

    public init(
        revision: UInt64, accessToken: Secret?, issuedAt: Int64, expiresAt: Int64, refreshToken: Secret?,
        scope: [String] = [], extra: [String: JSONValue] = [:], signIn: SignIn? = nil,
        refreshTokenLife: RefreshTokenLife? = nil
    ) {
        self.revision = revision
        self.accessToken = accessToken
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.refreshToken = refreshToken
        self.scope = scope
        members = SecretMembers(extra)
        self.signIn = signIn
        self.refreshTokenLife = refreshTokenLife
    }

    /// Parts of a second are cut off the token's life, never added.
    init(_ token: AccessToken, revision: UInt64, now: ContinuousClock.Instant, wallClock: Int64) {
        let left = max(0, now.duration(to: token.expiresAt).components.seconds)
        let age = max(0, token.issuedAt.duration(to: now).components.seconds)
        self.init(
            revision: revision, accessToken: token.value, issuedAt: wallClock - age, expiresAt: wallClock + left,
            refreshToken: token.refreshToken, scope: token.scope)
        members = token.members
    }

    /// The token as of now, or `nil` when it has expired, or when the wall clock stands before the time of issue: then
    /// nobody knows how old it is.
    func accessToken(now: ContinuousClock.Instant, wallClock: Int64) -> AccessToken? {
        guard let accessToken, TokenPolicy.isPresentable(accessToken), issuedAt <= wallClock, wallClock < expiresAt
        else { return nil }
        let left = min(expiresAt.subtractingSaturated(wallClock), TokenPolicy.maxLifetime.components.seconds)
        let age = min(wallClock.subtractingSaturated(issuedAt), TokenPolicy.maxLifetime.components.seconds)
        return AccessToken(
            value: accessToken, issuedAt: now - .seconds(age), expiresAt: now + .seconds(left),
            refreshToken: refreshToken, scope: scope, members: members)
    }
}

extension Int64 {
    fileprivate func subtractingSaturated(_ other: Int64) -> Int64 {
        let (value, overflow) = subtractingReportingOverflow(other)
        return overflow ? (self < other ? .min : .max) : value
    }
}
