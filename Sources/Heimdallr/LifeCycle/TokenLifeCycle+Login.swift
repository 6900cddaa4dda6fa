// Tokens from logins. A login holds the gate from its token request until `loginSaved`, so no fetch is sent in between.
extension TokenLifeCycle {
    typealias LoginID = UInt64

    /// A login's token request goes out now.
    mutating func askedForLogin(now: Instant) { fetching.askedElsewhere(now: now) }

    /// A login brought a token. It is used after its record was saved: the caller then calls `loginSaved`.
    /// - Parameter stored: revision of the store's record.
    /// - Returns: the record to save; `nil` after the end of the life cycle.
    /// - Throws: the fault of the token. Nothing has changed then.
    mutating func loggedIn(
        _ response: TokenResponse, as signIn: SignIn?, askedAt: Instant, over stored: UInt64, _ moment: Moment
    ) throws(TokenResponseError) -> (id: LoginID, record: TokenRecord)? {
        // The refresh token of an earlier login may be another person's.
        let token = try settings.policy.token(from: response, askedAt: askedAt, keeping: nil)
        guard !token.isExpired(at: moment.now) else { throw .alreadyExpired }
        guard stage != .stopped else { return nil }
        stage = .running
        let life = token.refreshToken == nil ? nil : RefreshLife(response.refreshTokenExpiresIn, from: askedAt)
        var record = TokenRecord(token, revision: saving.nextRevision(over: stored), moment)
        record.signIn = signIn
        record.refreshTokenLife = life?.record(moment)
        return (logins.begin(token, as: signIn, life), record)
    }

    /// Saving has ended. The token replaces the former one.
    /// - Returns: false after `clear`.
    mutating func loginSaved(_ id: LoginID, _ record: TokenRecord, fault: String?, _ moment: Moment) -> Bool {
        guard stage == .running, let login = logins.end(id) else { return false }
        saving.ended(record, fault: fault, moment)
        cancelFetch()
        grant.replace(login.token.refreshToken, login.refreshLife, login.signIn)
        rejections = Rejections()
        storedGeneration = nil
        suspicions = Suspicions()
        succeeded(now: moment.now)
        announcedNeed = false
        if login.token.isExpired(at: moment.now) {
            if token != nil { drop(.discarded) }
            if !waiters.isEmpty { wantToken(now: moment.now) }
        } else {
            publish(login.token, moment)
            act(.emit(.tokenAcquired(expiresIn: moment.now.duration(to: login.token.expiresAt), stored: false)))
        }
        tick(moment)
        return true
    }

    /// Asks for a new token now: after the minimum interval and the server's `Retry-After`, but without the rest of a backoff.
    mutating func refreshNow(_ moment: Moment) {
        guard stage == .running, !isYielding, !fetching.isUnderWay, logins.pending == nil, nextKind != nil else {
            return
        }
        fetching.plan(from: max(moment.now, failure?.serverWants ?? moment.now))
        tick(moment)
    }

    // MARK: Logins at other processes

    /// Looks for a login at another process, not too often. Called when a token is wanted.
    mutating func lookAgain(now: Instant) {
        if settings.needs == .person, logins.mayLook(now: now) { act(.look) }
    }

    /// Handles the store's record. It replaces ours only if we have no tokens. Revisions don't tell which is later: after a
    /// logout another process may have counted anew.
    mutating func looked(_ record: TokenRecord?, _ moment: Moment) {
        guard let record, stage == .running, !fetching.isUnderWay, logins.pending == nil,
            token == nil || isTokenInvalid,
            refreshToken == nil, record.accessToken == nil || record.accessToken != token?.value,
            record.revision != revision, record.refreshToken == nil || record.refreshToken != spentRefreshToken,
            record.refreshToken != nil || record.accessToken(at: moment) != nil
        else { return }
        succeeded(now: moment.now)
        saving.giveUp()
        saving.noteReading(fault: nil)
        takeUp(record, moment)
        if token == nil, nextKind != nil { wantToken(now: moment.now) }
        tick(moment)
    }

    // MARK: Other processes on one store

    /// Handles the store's record after a notification, without a request under way. An unsaved record of ours is saved first.
    mutating func noticed(_ record: TokenRecord?, _ moment: Moment) {
        guard stage == .running, logins.pending == nil else { return }
        guard saving.unsaved == nil else {
            saving.hurry(now: moment.now)
            return tick(moment)
        }
        storeIsBack()
        // A missing or empty record is a logout for all processes. A lower revision was restored from a backup.
        guard record.map({ $0.revision > revision }) ?? (revision > 0 && (token != nil || refreshToken != nil)) else {
            return
        }
        cancelFetch()
        if let record {
            adopt(record, moment)
        } else {
            drop(.discarded)
            grant.forget()
            if nextKind == nil { needAuthentication() }
        }
        if token == nil, !waiters.isEmpty { wantToken(now: moment.now) }
        tick(moment)
    }

    /// Takes another process's record as it is. Tokens that it does not hold are dropped.
    mutating func adopt(_ record: TokenRecord, _ moment: Moment) {
        succeeded(now: moment.now)
        saving.giveUp()
        saving.noteReading(fault: nil)
        takeUp(record, moment)
        if let token, token.value != record.accessToken { drop(.discarded) }
        if token == nil {
            if nextKind == nil { needAuthentication() } else if !waiters.isEmpty { wantToken(now: moment.now) }
        }
    }

    /// The store is unreachable.
    mutating func storeIsAway(_ error: TokenStoreError) { saving.noteReading(fault: error) }

    /// The store is reachable again. Ends all waits for it.
    mutating func storeIsBack() {
        guard saving.away != nil else { return }
        saving.noteReached()
        if case .unavailable(.store) = failure?.kind { setbacks.forgetFailure() }
    }

    // MARK: The refresh token's own end

    /// Life of the answer's refresh token. A shrinking life is one session, whose end is announced once.
    func life(of response: TokenResponse, replacing old: Secret?, askedAt: Instant) -> RefreshLife? {
        guard let seconds = response.refreshTokenExpiresIn else {
            let isNew = response.refreshToken.map { $0 != old } ?? false
            return isNew ? nil : grant.life
        }
        guard var life = RefreshLife(seconds, from: askedAt) else { return nil }
        if let before = grant.life, life.endsAt <= before.endsAt + .seconds(60) {
            life.beganAt = before.beganAt
            life.stage = before.stage
        }
        return life
    }

    /// Time of the next step for the refresh token's end; `nil`: none, or one is under way.
    var endWarningDue: Instant? {
        guard stage == .running, settings.needs != .nobody, refreshToken != nil, let life = grant.life else {
            return nil
        }
        switch life.stage {
        case .quiet: return life.warnAt
        case .tried:
            let isBeingDone = fetching.isUnderWay || (fetching.dueAt != nil && failure == nil)
            return isBeingDone ? nil : life.warnAt
        case .announced: return nil
        }
    }

    /// Uses the refresh token once before its end, even if no token is wanted: many servers then extend the session. If that
    /// does not help, announces the end.
    mutating func warnOfEnd(now: Instant) {
        guard let due = endWarningDue, due <= now, let life = grant.life else { return }
        if life.stage == .quiet, life.isWorthKeeping, now < life.endsAt {
            grant.life?.stage = .tried
            wantToken(now: now)
            if fetching.isUnderWay || fetching.dueAt != nil { return }
        }
        grant.life?.stage = .announced
        if now < life.endsAt { act(.emit(.refreshTokenEnding(expiresIn: now.duration(to: life.endsAt)))) }
    }
}
