/// The refresh token, the trust in it, and the person who signed in.
struct HeldGrant: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Verdict on the refresh token after answers 400 or 401 that named no cause.
    private enum Trust: Sendable {
        case trusted
        case refusedOnce(Instant)
        /// Probably dead: every other attempt does without it.
        case doubtful
    }

    private(set) var refreshToken: Secret?
    /// `nil`: there is no refresh token, or the server has not said how long it lives.
    private(set) var life: RefreshLife?
    private(set) var signIn: SignIn?
    /// The server and the client that the tokens belong to; `nil`: the configured ones.
    private(set) var enrolment: Enrolment?
    /// The last refresh token that was refused.
    private(set) var spent: Secret?
    private(set) var lastAttemptWasGrant = false
    private var trust = Trust.trusted

    /// Kind of the next request; `nil`: only a login helps.
    func nextKind(_ needs: GrantNeeds) -> TokenLifeCycle.FetchKind? {
        if let refreshToken {
            let skipsIt = if case .doubtful = trust { needs != .person && !lastAttemptWasGrant } else { false }
            if !skipsIt { return .refresh(refreshToken) }
        }
        return needs == .person ? nil : .grant
    }

    mutating func attempts(_ kind: TokenLifeCycle.FetchKind) { lastAttemptWasGrant = kind == .grant }

    // MARK: Getting and losing it

    mutating func takeUp(_ record: TokenRecord, _ moment: Moment) {
        hold(record.refreshToken, record.refreshTokenLife.map { RefreshLife($0, moment) })
        signIn = record.signIn
        enrolment = record.enrolment.flatMap { Enrolment(stored: $0) }
    }

    /// Takes the enrolment of a sign-in that begins, or that has succeeded.
    mutating func enrol(_ new: Enrolment) { enrolment = new }

    mutating func replace(_ refreshToken: Secret?, _ life: RefreshLife?, _ signIn: SignIn?) {
        hold(refreshToken, life)
        self.signIn = signIn
        trust = .trusted
    }

    /// Takes the refresh token of an answer, or keeps `former`, which was sent. A shrinking life is one session, whose end is
    /// announced once.
    mutating func renew(by response: TokenResponse, replacing former: Secret?, askedAt: Instant) {
        // The id token is sent only to the server that issued it.
        if let idToken = response.idToken { signIn?.idToken = idToken }
        if let new = response.enrolment { enrolment = new }
        let token = response.refreshToken ?? former
        guard let seconds = response.refreshTokenExpiresIn else { return hold(token, token == former ? life : nil) }
        var new = RefreshLife(seconds, from: askedAt)
        if let end = new?.endsAt, let life, end <= life.endsAt + .seconds(60) {
            new?.beganAt = life.beganAt
            new?.stage = life.stage
        }
        hold(token, new)
    }

    private mutating func hold(_ refreshToken: Secret?, _ life: RefreshLife?) {
        self.refreshToken = refreshToken
        self.life = refreshToken == nil ? nil : life
    }

    /// The end of the refresh token's life has another stage.
    mutating func note(_ stage: RefreshLife.Stage) { life?.stage = stage }

    /// The server refused `token` for good.
    mutating func lose(_ token: Secret) {
        forget()
        spent = token
    }

    /// A configured refresh token was refused.
    mutating func spend(_ seed: Secret?) { spent = seed }

    /// Forgets all but the refused refresh token.
    mutating func forget() { replace(nil, nil, nil) }

    // MARK: Doubting it

    /// Time between two refusals that counts as proof.
    static let doubtPause = Duration.seconds(2)

    /// Counts a refusal without a cause.
    /// - Returns: time of the attempt that decides; `nil`: the refresh token is doubtful.
    mutating func refused(at now: Instant) -> Instant? {
        switch trust {
        case .doubtful: return nil
        case .refusedOnce(let since) where now - since >= Self.doubtPause:
            trust = .doubtful
            return nil
        case .refusedOnce(let since): return since + Self.doubtPause
        case .trusted:
            trust = .refusedOnce(now)
            return now + Self.doubtPause
        }
    }

    /// The server has accepted it, or another one has come.
    mutating func restoreTrust() { trust = .trusted }

    /// Whether a refresh was refused once, and the attempt at `retryAt` decides.
    func isInDoubt(until retryAt: Instant) -> Bool {
        guard case .refusedOnce(let since) = trust else { return false }
        return retryAt <= since + Self.doubtPause
    }
}
