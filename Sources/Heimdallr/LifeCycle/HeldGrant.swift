/// The refresh token, whether it is trusted, and the person who signed in.
struct HeldGrant: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Verdict on the refresh token after 400 or 401 responses without a clear cause.
    private enum Trust: Sendable {
        case trusted
        case refusedOnce(Instant)
        /// Probably dead. If another grant is possible, every other request uses that instead.
        case doubtful
    }

    private(set) var refreshToken: Secret?
    /// Lifetime of the refresh token; `nil` without a refresh token, or if the server stated no lifetime.
    private(set) var life: RefreshLife?
    private(set) var signIn: SignIn?
    /// The server and the client that the tokens belong to; `nil`: both are configured.
    private(set) var enrolment: Enrolment?
    /// The last refused refresh token.
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

    // MARK: Receiving and losing the refresh token

    mutating func takeUp(_ record: TokenRecord, _ moment: Moment) {
        hold(record.refreshToken, record.refreshTokenLife.map { RefreshLife($0, moment) })
        signIn = record.signIn
        enrolment = record.enrolment.flatMap { Enrolment(stored: $0) }
    }

    /// Sets the enrolment of a sign-in that begins or has succeeded.
    mutating func enrol(_ new: Enrolment) { enrolment = new }

    mutating func replace(_ refreshToken: Secret?, _ life: RefreshLife?, _ signIn: SignIn?) {
        hold(refreshToken, life)
        self.signIn = signIn
        trust = .trusted
    }

    /// Takes the refresh token of an answer, or else keeps `former`, the one sent. If the expiry does not move later,
    /// the session is the same, and its expiry is announced only once.
    mutating func renew(by response: TokenResponse, replacing former: Secret?, askedAt: Instant) {
        // The id token is not verified here: the client only sends it back to the server that issued it.
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

    /// Notes whether the refresh token's expiry was announced, or its use before expiry tried.
    mutating func note(_ stage: RefreshLife.Stage) { life?.stage = stage }

    /// Forgets the tokens, because the server refused the refresh token `token` for good.
    mutating func lose(_ token: Secret) {
        forget()
        spent = token
    }

    /// Notes that a configured refresh token was refused.
    mutating func spend(_ seed: Secret?) { spent = seed }

    /// Forgets all but the refused refresh token.
    mutating func forget() { replace(nil, nil, nil) }

    // MARK: Doubting the refresh token

    /// Shortest time between two refusals after which the refresh token is doubtful.
    static let doubtPause = Duration.seconds(2)

    /// Counts a refusal without a clear cause.
    /// - Returns: time of the deciding second attempt; `nil`: the refresh token is now doubtful.
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

    /// Trusts the refresh token again: the server accepted it or issued a new one.
    mutating func restoreTrust() { trust = .trusted }

    /// Whether one refresh was refused, and the attempt at `retryAt` is the deciding second one.
    func isInDoubt(until retryAt: Instant) -> Bool {
        guard case .refusedOnce(let since) = trust else { return false }
        return retryAt <= since + Self.doubtPause
    }
}
