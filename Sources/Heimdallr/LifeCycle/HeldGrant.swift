/// The refresh token, the trust in it, and the person who signed in.
struct HeldGrant: Sendable {
    typealias Instant = ContinuousClock.Instant

    private(set) var refreshToken: Secret?
    /// `nil`: the server has not said how long the refresh token lives.
    var life: RefreshLife?
    /// The person who signed in.
    private(set) var signIn: SignIn?
    /// The last refresh token that was refused.
    private(set) var spent: Secret?
    /// 400 or 401 to a refresh, but not what would say whose fault it is: when the first of this row came.
    private(set) var refusedSince: Instant?
    /// The refresh token is dead, most likely: every other attempt does without it.
    private(set) var isDoubtful = false
    private(set) var lastAttemptWasGrant = false

    /// How the next token can be had without a person, if it can.
    func nextKind(_ needs: GrantNeeds) -> TokenLifeCycle.FetchKind? {
        if let refreshToken {
            let alternates = isDoubtful && needs != .person && !lastAttemptWasGrant
            if !alternates { return .refresh(refreshToken) }
        }
        return needs == .person ? nil : .grant
    }

    mutating func attempts(_ kind: TokenLifeCycle.FetchKind) { lastAttemptWasGrant = kind == .grant }

    // MARK: Getting and losing it

    /// The store's.
    mutating func takeUp(_ record: TokenRecord, _ moment: Moment) {
        refreshToken = record.refreshToken
        life = record.refreshTokenLife.map { RefreshLife($0, moment) }
        signIn = record.signIn
    }

    /// A login's, in place of everything.
    mutating func replace(_ refreshToken: Secret?, _ life: RefreshLife?, _ signIn: SignIn?) {
        self.refreshToken = refreshToken
        self.life = life
        self.signIn = signIn
        trust()
    }

    /// An answer's, or the one before where it has none.
    mutating func renew(_ refreshToken: Secret?, _ life: RefreshLife?) {
        self.refreshToken = refreshToken
        self.life = life
    }

    /// The server does not take `token` any more.
    mutating func lose(_ token: Secret) {
        forget()
        spent = token
    }

    /// One that was handed in was refused.
    mutating func spend(_ seed: Secret?) { spent = seed }

    /// It stays known which one was refused.
    mutating func forget() {
        refreshToken = nil
        life = nil
        signIn = nil
        trust()
    }

    // MARK: Doubting it

    /// Two refusals so far apart are no accident.
    static let doubtPause = Duration.seconds(2)

    /// The server refused a refresh without naming the fault. The second such refusal counts as `invalid_grant` for the
    /// next step. The refresh token is kept, and tried at long intervals.
    /// - Returns: time of the second attempt; `nil`: this was the second refusal.
    mutating func refused(at now: Instant) -> Instant? {
        let since = refusedSince ?? now
        refusedSince = since
        if now - since >= Self.doubtPause { isDoubtful = true }
        return isDoubtful ? nil : max(now, since + Self.doubtPause)
    }

    mutating func trust() {
        isDoubtful = false
        refusedSince = nil
    }

    /// A refresh was refused once: whether it is the end is known in a moment, at `retryAt`.
    func isInDoubt(until retryAt: Instant) -> Bool {
        guard let refusedSince else { return false }
        return !isDoubtful && retryAt <= refusedSince + Self.doubtPause
    }
}
