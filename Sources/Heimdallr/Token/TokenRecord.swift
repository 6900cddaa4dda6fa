/// The signed-in person. A refresh does not change the person. Prints as `<redacted>`.
public struct SignIn: Sendable, Equatable, Redacted {
    /// The verified id token of the login, or a newer one from a refresh.
    public var idToken: Secret?
    /// The person's name from the id token's claims, for display. Printable, at most 256 characters.
    public var name: String?

    /// The parameters are the properties.
    public init(idToken: Secret? = nil, name: String? = nil) {
        self.idToken = idToken
        self.name = name
    }
}

/// A client's data in the store. Times are wall clock seconds since 1970. Prints as `<redacted>`.
public struct TokenRecord: Sendable, Equatable, Redacted {
    /// Number that increases with every change. The record with the higher revision is the later one.
    public var revision: UInt64
    /// The access token; `nil`: there is none.
    public var accessToken: Secret?
    /// Time at which the access token was requested, in seconds since 1970.
    public var issuedAt: Int64
    /// Time at which the access token expires, in seconds since 1970.
    public var expiresAt: Int64
    /// The refresh token for the next token request; `nil`: there is none.
    public var refreshToken: Secret?
    /// The granted scopes.
    public var scope: [String]
    /// Other members of the answer. Each access parses their text again, so that secret values don't stay in memory.
    public var extra: [String: JSONValue] {
        get { members.values }
        set { members = SecretMembers(newValue) }
    }
    var members = SecretMembers()
    /// The signed-in person; `nil`: no person signed in, or the server does not name the person.
    public var signIn: SignIn?
    /// Lifetime of the refresh token; `nil`: the server did not state it.
    public var refreshTokenLife: RefreshTokenLife?
    /// The private key that the tokens are bound to (RFC 9449); `nil`: none, or the configuration names the key.
    public var dpopKey: Secret?
    /// The thumbprint of the key that the access token is bound to (RFC 7638); `nil`: not bound. In the store, also has
    /// the fingerprint of the client certificate, if the token is bound to it.
    public var keyThumbprint: String?
    /// The key with the thumbprint `keyThumbprint`, ready for use. It comes from `dpopKey` or the configuration.
    var binding: DPoPKey? {
        get { traits.binding }
        set { traits.binding = newValue }
    }
    /// Fingerprint of the token's client certificate (RFC 8705 section 3); `nil`: none. Stored in `keyThumbprint`.
    var certificate: UInt64? {
        get { traits.certificate }
        set { traits.certificate = newValue }
    }
    /// The stored `Enrolment`: server and client of the tokens; `nil`: the configuration names both.
    package var enrolment: Secret?
    /// Configured refresh tokens that are not sent again. They outlive the tokens of the record.
    package var spentSeeds = SpentSeeds()
    /// Times of the token on the monotonic clock, for stores that keep fractions of a second.
    @Uncompared package var moments: Moments?
    /// Source of the access token's end.
    package var endsBy: TokenEnd {
        get { traits.endsBy }
        set { traits.endsBy = newValue }
    }
    /// See `HeldGrant`.
    var subject: UInt64? {
        get { traits.subject }
        set { traits.subject = newValue }
    }
    @Uncompared private var traits = Traits()

    /// Properties of the tokens that are not compared.
    private struct Traits: Sendable {
        var binding: DPoPKey?
        var certificate: UInt64?
        var endsBy = TokenEnd.stated
        var subject: UInt64?
    }

    /// Issue and expiry on the monotonic clock of this process.
    package struct Moments: Sendable {
        package var issuedAt: ContinuousClock.Instant
        package var expiresAt: ContinuousClock.Instant
        /// Whether a store has computed both times by its own clock. If so, the record's wall clock times are ignored.
        package var isFromStore: Bool

        package init(
            issuedAt: ContinuousClock.Instant, expiresAt: ContinuousClock.Instant, isFromStore: Bool = false
        ) {
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
            self.isFromStore = isFromStore
        }
    }

    /// Issue and expiry of a refresh token.
    public struct RefreshTokenLife: Sendable, Equatable {
        /// Time at which the refresh token was requested, in seconds since 1970.
        public var issuedAt: Int64
        /// Time at which the refresh token expires, in seconds since 1970.
        public var expiresAt: Int64

        /// The parameters are the properties.
        public init(issuedAt: Int64, expiresAt: Int64) {
            self.issuedAt = issuedAt
            self.expiresAt = expiresAt
        }
    }

    /// For your own implementation of a store. The parameters are the properties of the same names.
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

    /// Whether the record has any content. A removed record has none.
    package var holdsAnything: Bool { holdsTokens || !spentSeeds.isEmpty }

    /// Whether the record has more than spent refresh tokens.
    var holdsTokens: Bool { accessToken != nil || refreshToken != nil || dpopKey != nil || enrolment != nil }

    /// Makes a record of a token. Rounds the remaining lifetime down to whole seconds.
    init(_ token: AccessToken, revision: UInt64, _ moment: Moment) {
        let left = max(0, moment.now.duration(to: token.expiresAt).components.seconds)
        let age = max(0, token.issuedAt.duration(to: moment.now).components.seconds)
        self.init(
            revision: revision, accessToken: token.value, issuedAt: moment.wallClock - age,
            expiresAt: moment.wallClock + left, refreshToken: token.refreshToken, scope: token.scope)
        members = token.members
        binding = token.binding
        certificate = token.certificate
        endsBy = token.endsBy
        moments = Moments(issuedAt: token.issuedAt, expiresAt: token.expiresAt)
    }

    /// Returns the access token; `nil` if there is none, or if it is expired or of unknown age (the clock went back).
    func accessToken(at moment: Moment) -> AccessToken? {
        guard let accessToken, accessToken.isVisible, let life = life(at: moment) else { return nil }
        return AccessToken(
            AccessToken.Content(
                value: accessToken, type: binding == nil ? "Bearer" : "DPoP", issuedAt: life.issuedAt,
                expiresAt: endsBy == .open
                    ? moment.now + TokenPolicy.endless : min(life.expiresAt, moment.now + TokenPolicy.maxLifetime),
                refreshToken: refreshToken, scope: scope, members: members, binding: binding, certificate: certificate,
                endsBy: endsBy))
    }

    private func life(at moment: Moment) -> Moments? {
        let (now, wallClock) = (moment.now, moment.wallClock)
        if let moments, moments.isFromStore {
            return moments.issuedAt <= now && now < moments.expiresAt ? moments : nil
        }
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
