/// The signed-in person. Stays the same when tokens are refreshed. Prints as `<redacted>`.
public struct SignIn: Sendable, Equatable, Redacted {
    /// The verified id token of the login, or a newer one from a refresh.
    public var idToken: Secret?
    /// A name out of the id token's claims, for people. Printable, at most 256 characters.
    public var name: String?

    /// - Parameters:
    ///   - idToken: a verified one.
    ///   - name: a printable name.
    public init(idToken: Secret? = nil, name: String? = nil) {
        self.idToken = idToken
        self.name = name
    }
}

/// A client's data in the store. Times are wall clock seconds since 1970. Prints as `<redacted>`.
public struct TokenRecord: Sendable, Equatable, Redacted {
    /// Grows with every change; of two records the higher one is the later.
    public var revision: UInt64
    /// The access token; `nil`: there is none.
    public var accessToken: Secret?
    /// When the access token was asked for, in seconds since 1970.
    public var issuedAt: Int64
    /// When the access token expires, in seconds since 1970.
    public var expiresAt: Int64
    /// The refresh token for the next token request; `nil`: there is none.
    public var refreshToken: Secret?
    /// The scopes that were granted.
    public var scope: [String]
    /// The answer's other members. Each call parses the answer, so that secret values don't stay in memory.
    public var extra: [String: JSONValue] {
        get { members.values }
        set { members = SecretMembers(newValue) }
    }
    var members = SecretMembers()
    /// The signed-in person; `nil`: none, or the server does not name the person.
    public var signIn: SignIn?
    /// How long the refresh token lives; `nil`: the server has not said.
    public var refreshTokenLife: RefreshTokenLife?
    /// The private key that the tokens are bound to (RFC 9449); `nil`: none, or a configured one.
    public var dpopKey: Secret?
    /// The thumbprint of the key that the access token is bound to (RFC 7638); `nil`: it is a Bearer token.
    public var keyThumbprint: String?
    private var bound = Bound()
    /// The server and the client that the tokens belong to, where an API's documents named them.
    package var enrolment: Secret?

    /// Times of the token by the clock of its process, for stores that keep more than whole seconds.
    package var measured: Moments?
    /// The same as a store has reckoned it, without any wall clock; then these count.
    package var reckoned: Moments?

    /// Key and certificate of the access token, ready for use.
    private struct Bound: Sendable {
        var key: DPoPKey?
        var certificate: UInt64?
    }

    /// The key with the thumbprint `keyThumbprint`: stored in the record, or kept elsewhere.
    var binding: DPoPKey? {
        get { bound.key }
        set { bound.key = newValue }
    }

    /// Number of the client certificate that the token is bound to (RFC 8705 section 3). Stored as `keyThumbprint`.
    var certificate: UInt64? {
        get { bound.certificate }
        set { bound.certificate = newValue }
    }

    /// Times by the monotonic clock of this process.
    package struct Moments: Sendable {
        package var issuedAt: ContinuousClock.Instant
        package var expiresAt: ContinuousClock.Instant

        package init(issuedAt: ContinuousClock.Instant, expiresAt: ContinuousClock.Instant) {
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
        }
    }

    /// From when to when a refresh token is good.
    public struct RefreshTokenLife: Sendable, Equatable {
        /// When it was asked for, in seconds since 1970.
        public var issuedAt: Int64
        /// When it expires, in seconds since 1970.
        public var expiresAt: Int64

        /// - Parameters:
        ///   - issuedAt: in seconds since 1970.
        ///   - expiresAt: in seconds since 1970.
        public init(issuedAt: Int64, expiresAt: Int64) {
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
        }
    }

    /// For a store of your own: the parameters are the properties of the same names.
    public init(
        revision: UInt64, accessToken: Secret?, issuedAt: Int64, expiresAt: Int64, refreshToken: Secret?,
        scope: [String] = [], extra: [String: JSONValue] = [:], signIn: SignIn? = nil,
        refreshTokenLife: RefreshTokenLife? = nil, dpopKey: Secret? = nil,
        keyThumbprint: String? = nil
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
        self.dpopKey = dpopKey
        self.keyThumbprint = keyThumbprint
    }

    /// A record that was removed has no content.
    var holdsAnything: Bool { accessToken != nil || refreshToken != nil || dpopKey != nil || enrolment != nil }

    /// Parts of a second are cut off the token's life, never added.
    init(_ token: AccessToken, revision: UInt64, _ moment: Moment) {
        let left = max(0, moment.now.duration(to: token.expiresAt).components.seconds)
        let age = max(0, token.issuedAt.duration(to: moment.now).components.seconds)
        self.init(
            revision: revision, accessToken: token.value, issuedAt: moment.wallClock - age,
            expiresAt: moment.wallClock + left, refreshToken: token.refreshToken, scope: token.scope)
        members = token.members
        binding = token.binding
        certificate = token.certificate
        measured = Moments(issuedAt: token.issuedAt, expiresAt: token.expiresAt)
    }

    /// The token now; `nil` after its end, and while the wall clock is before its issue, because its age is unknown then.
    func accessToken(at moment: Moment) -> AccessToken? {
        guard let accessToken, accessToken.isVisible, let life = life(at: moment) else { return nil }
        return AccessToken(
            value: accessToken, type: binding == nil ? "Bearer" : "DPoP", issuedAt: life.issuedAt,
            expiresAt: min(life.expiresAt, moment.now + TokenPolicy.maxLifetime), refreshToken: refreshToken,
            scope: scope, members: members, binding: binding, certificate: certificate)
    }

    private func life(at moment: Moment) -> Moments? {
        let (now, wallClock) = (moment.now, moment.wallClock)
        if let reckoned { return reckoned.issuedAt <= now && now < reckoned.expiresAt ? reckoned : nil }
        guard issuedAt <= wallClock, wallClock < expiresAt else { return nil }
        func bounded(_ seconds: Int64) -> Duration { min(.seconds(seconds), TokenPolicy.maxLifetime) }
        return Moments(
            issuedAt: now - bounded(wallClock.subtractingSaturated(issuedAt)),
            expiresAt: now + bounded(expiresAt.subtractingSaturated(wallClock)))
    }
}

extension Int64 {
    fileprivate func subtractingSaturated(_ other: Int64) -> Int64 {
        let (value, overflow) = subtractingReportingOverflow(other)
        return overflow ? (self < other ? .min : .max) : value
    }
}

/// Records with the same content are equal; a key that is ready for use adds nothing to it.
extension TokenRecord {
    public static func == (one: TokenRecord, other: TokenRecord) -> Bool {
        one.revision == other.revision && one.accessToken == other.accessToken && one.issuedAt == other.issuedAt
            && one.expiresAt == other.expiresAt && one.refreshToken == other.refreshToken && one.scope == other.scope
            && one.members == other.members && one.signIn == other.signIn
            && one.refreshTokenLife == other.refreshTokenLife && one.dpopKey == other.dpopKey
            && one.keyThumbprint == other.keyThumbprint && one.enrolment == other.enrolment
    }
}
