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
    /// Time of the first 400 or 401 to a refresh that named no cause.
    private(set) var refusedSince: Instant?
    /// The refresh token is probably dead: every other attempt does without it.
    private(set) var isDoubtful = false
    private(set) var lastAttemptWasGrant = false

    /// Kind of the next request; `nil`: only a login helps.
    func nextKind(_ needs: GrantNeeds) -> TokenLifeCycle.FetchKind? {
        if let refreshToken {
            let alternates = isDoubtful && needs != .person && !lastAttemptWasGrant
            if !alternates { return .refresh(refreshToken) }
        }
        return needs == .person ? nil : .grant
    }

    mutating func attempts(_ kind: TokenLifeCycle.FetchKind) { lastAttemptWasGrant = kind == .grant }

    // MARK: Getting and losing it

    /// Takes the record of the store.
    mutating func takeUp(_ record: TokenRecord, _ moment: Moment) {
        refreshToken = record.refreshToken
        life = record.refreshTokenLife.map { RefreshLife($0, moment) }
        signIn = record.signIn
    }

    /// Takes the result of a login.
    mutating func replace(_ refreshToken: Secret?, _ life: RefreshLife?, _ signIn: SignIn?) {
        self.refreshToken = refreshToken
        self.life = life
        self.signIn = signIn
        trust()
    }

    /// Takes the refresh token of an answer, or keeps the one before.
    mutating func renew(_ refreshToken: Secret?, _ life: RefreshLife?) {
        self.refreshToken = refreshToken
        self.life = life
    }

    /// The server refused `token` for good.
    mutating func lose(_ token: Secret) {
        forget()
        spent = token
    }

    /// A configured refresh token was refused.
    mutating func spend(_ seed: Secret?) { spent = seed }

    /// Forgets all but the refused refresh token.
    mutating func forget() {
        refreshToken = nil
        life = nil
        signIn = nil
        trust()
    }

    // MARK: Doubting it

    /// Time between two refusals that counts as proof.
    static let doubtPause = Duration.seconds(2)

    /// Counts a refusal without a cause.
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

    /// Whether a refresh was refused once, and the attempt at `retryAt` decides.
    func isInDoubt(until retryAt: Instant) -> Bool {
        guard let refusedSince else { return false }
        return !isDoubtful && retryAt <= refusedSince + Self.doubtPause
    }
}
