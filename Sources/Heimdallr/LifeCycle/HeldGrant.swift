/// The refresh token, whether it is trusted, and the person who signed in.
struct HeldGrant: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Verdict on the refresh token after 400 or 401 responses without a clear cause.
    private enum Trust: Sendable {
        case trusted
        case refusedOnce(Instant)
        /// Probably dead. If another grant is possible, requests use this grant and the refresh token in turn.
        case doubtful
    }

    private(set) var refreshToken: Secret?
    /// Lifetime of the refresh token; `nil` without a refresh token, or if the server stated no lifetime.
    private(set) var life: RefreshLife?
    private(set) var signIn: SignIn? { didSet { identity = Self.identity(of: signIn) } }
    /// See `identity(of:)`.
    private(set) var identity: UInt64 = 0
    /// The person at another client whose sign-in the tokens were made from; `nil`: unknown, or no such client.
    private(set) var subject: UInt64?
    /// The last person who signed in, also after that sign-in has ended.
    private var lastPerson: String?
    /// The person whom the last sign-in has replaced; `nil` if it was the same one.
    private(set) var formerPerson: String?
    /// The granted scope of the last answer.
    private(set) var scope: [String] = []
    /// Whether refreshes go without a scope, because the server refused one with it.
    private var omitsScope = false
    /// The server and the client that the tokens belong to; `nil`: both are configured.
    private(set) var enrolment: Enrolment?
    /// The last refused refresh token.
    private(set) var spent: Secret?
    /// Configured refresh tokens that are not sent again.
    private(set) var spentSeeds = SpentSeeds()
    private(set) var lastAttemptWasNewGrant = false
    private var trust = Trust.trusted

    /// Kind of the next request; `nil`: only a login helps.
    func nextKind(_ needs: GrantNeeds) -> TokenLifeCycle.FetchKind? {
        if let refreshToken {
            let skipsIt = if case .doubtful = trust { needs != .person && !lastAttemptWasNewGrant } else { false }
            if !skipsIt { return .refresh(refreshToken) }
        }
        return needs == .person ? nil : .grant
    }

    mutating func attempts(_ kind: TokenLifeCycle.FetchKind) { lastAttemptWasNewGrant = kind == .grant }

    // MARK: Receiving and losing the refresh token

    mutating func takeUp(_ record: TokenRecord, _ moment: Moment) {
        hold(record.refreshToken, record.refreshTokenLife.map { RefreshLife($0, moment) })
        signIn = record.signIn
        lastPerson = signIn?.name ?? lastPerson
        scope = record.scope
        enrolment = record.enrolment.flatMap { Enrolment(stored: $0) }
        spentSeeds.merge(record.spentSeeds)
        subject = record.subject
    }

    mutating func belongs(to subject: UInt64?) { self.subject = subject }

    /// Sets the enrolment of a sign-in that begins or has succeeded.
    mutating func enrol(_ new: Enrolment) { enrolment = new }

    mutating func replace(
        _ refreshToken: Secret?, _ life: RefreshLife?, _ signIn: SignIn?, scope: [String] = []
    ) {
        hold(refreshToken, life)
        self.signIn = signIn
        formerPerson = signIn?.name == nil || signIn?.name == lastPerson ? nil : lastPerson
        lastPerson = signIn?.name ?? lastPerson
        self.scope = scope
        omitsScope = false
        trust = .trusted
    }

    /// Notes the granted scope of a new access token.
    mutating func grants(_ scope: [String]) { self.scope = scope }

    /// Notes a fault of a refresh. If the server blames the scope, the next refresh goes without it, or again with it.
    mutating func noteFault(_ fault: TokenEndpointFault) { if fault.blamesScope { omitsScope.toggle() } }

    /// Returns the scope that a refresh names; empty: none.
    func scopeOfRefresh(by requests: TokenRequests) -> [String] {
        guard requests.configuration.refreshesWithScope, !omitsScope else { return [] }
        let silent: Set = signIn?.idToken == nil ? ["offline_access"] : ["offline_access", "openid"]
        return GrantedScope.again(scope, askedFor: requests.requestedScope, silent: silent)
    }

    /// Takes the refresh token of an answer, or else keeps `former`. If its expiry is at most 60 s later than before,
    /// the server has not extended the session, and the expiry is announced only once.
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

    /// Notes that the expiry of the refresh token was announced, or that a refresh before the expiry was tried.
    mutating func note(_ stage: RefreshLife.Stage) { life?.stage = stage }

    /// Forgets the refresh token and the sign-in, because the server refused the refresh token `token` for good.
    mutating func lose(_ token: Secret) {
        forget()
        spend(token)
    }

    /// Notes that a configured refresh token was refused.
    mutating func spend(_ seed: Secret?) {
        spent = seed
        if let seed { spentSeeds.note(seed) }
    }

    mutating func merge(_ seeds: SpentSeeds) { spentSeeds.merge(seeds) }

    /// Notes that the server has replaced the configured refresh token of a request by `new`.
    mutating func exchanged(_ seed: Secret?, for new: Secret?) {
        if let seed, let new, new != seed { spentSeeds.note(seed) }
    }

    /// Forgets the refresh token and the sign-in.
    mutating func forget() { replace(nil, nil, nil) }

    // MARK: Doubting the refresh token

    /// Shortest time between two refusals that make the refresh token doubtful.
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
