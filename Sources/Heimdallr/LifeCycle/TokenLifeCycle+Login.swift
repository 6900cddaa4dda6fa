// Tokens from logins. A login holds the gate from its token request until `loginSaved`, so no fetch is sent meanwhile.
extension TokenLifeCycle {
    typealias LoginID = UInt64

    mutating func askedForLogin(now: Instant) { fetching.startedElsewhere(now: now) }

    /// Records the enrolment of a new sign-in. The current tokens keep their enrolment until the sign-in succeeds.
    /// - Parameter stored: revision of the store's record.
    /// - Returns: the record to save; `nil` after the end of the life cycle.
    mutating func enrolled(_ new: Enrolment, over stored: UInt64, _ moment: Moment) -> TokenRecord? {
        guard stage != .stopped else { return nil }
        stage = .running
        enrol(grant.enrolment?.beginning(new) ?? new)
        _ = saving.nextRevision(over: stored)
        return record(token, moment)
    }

    private mutating func enrol(_ new: Enrolment) {
        grant.enrol(new)
        act(.enrol(new))
    }

    /// Whether a request may go without a token, because only a login can give a token. If so, also searches the store
    /// for a login at another process.
    mutating func lacksPerson(_ moment: Moment) -> Bool {
        guard stage == .running, token.map({ $0.isExpired(at: moment.now) }) ?? true, nextKind == nil,
            fetching.isIdle, !awaitsStore, logins.pending == nil
        else { return false }
        lookAgain(now: moment.now)
        return true
    }

    mutating func loginFailed(_ error: LoginError, _ moment: Moment) {
        logins.failed(error, at: moment.now)
        act(.emit(.loginFailed(error)))
    }

    /// Handles the token of a login. The caller saves the record and calls `loginSaved`, which makes the token current.
    /// - Parameter stored: revision of the store's record.
    /// - Returns: the record to save; `nil` after the end of the life cycle.
    /// - Throws: the reason why the token is unusable. The state is then unchanged.
    mutating func loggedIn(
        _ response: TokenResponse, as signIn: SignIn?, askedAt: Instant, over stored: UInt64, _ moment: Moment
    ) throws(TokenResponseError) -> (id: LoginID, record: TokenRecord)? {
        // The refresh token of an earlier login may be another person's, so it is not kept.
        let token = try settings.policy.token(from: response, askedAt: askedAt, keeping: nil, moment)
        guard !token.isExpired(at: moment.now) else { throw .alreadyExpired }
        guard stage != .stopped else { return nil }
        stage = .running
        let life = token.refreshToken == nil ? nil : RefreshLife(response.refreshTokenExpiresIn, from: askedAt)
        var record = TokenRecord(token, revision: saving.nextRevision(over: stored), moment)
        record.signIn = signIn
        record.refreshTokenLife = life?.record(moment)
        record.enrolment = grant.enrolment?.succeeded.stored
        return (logins.begin(token, as: signIn, life), record)
    }

    /// Handles the end of saving a login's record. The token of the login replaces the current token.
    /// - Returns: false if the login was discarded meanwhile, for example by `clear` or a later login.
    mutating func loginSaved(_ id: LoginID, _ record: TokenRecord, fault: TokenStoreError?, _ moment: Moment) -> Bool {
        guard stage == .running, let login = logins.end(id) else { return false }
        saving.ended(record, fault: fault, moment)
        cancelFetch()
        if let enrolment = grant.enrolment { enrol(enrolment.succeeded) }
        grant.replace(login.token.refreshToken, login.refreshLife, login.signIn, scope: login.token.scope)
        setbacks.rejections = Rejections()
        suspicions = Suspicions()
        succeeded(now: moment.now)
        endNeed()
        if login.token.isExpired(at: moment.now) {
            if token != nil { drop(.discarded) }
            if !waiters.isEmpty { wantToken(now: moment.now) }
        } else {
            publish(login.token, moment)
            act(.emit(.tokenAcquired(expiresIn: login.token.left(at: moment.now), stored: false)))
        }
        tick(moment)
        return true
    }
}
