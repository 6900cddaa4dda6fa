extension TokenLifeCycle {
    // MARK: Beginning a fetch

    /// Kind of the next fetch; `nil`: only a login helps.
    var nextKind: FetchKind? { grant.nextKind(settings.needs) }

    mutating func wantToken(now: Instant) {
        guard stage == .running, !fetching.isUnderWay else { return }
        guard !isYielding else { return resumeAll(.failure(Self.hasYielded)) }
        guard nextKind != nil else {
            needAuthentication()
            return
        }
        fetching.plan(from: max(now, failure?.retryAt ?? now, rejectedUntil ?? now))
    }

    /// Does everything that is due: expiry, refreshes, retries, deadlines. May be called at any time.
    mutating func tick(_ moment: Moment) {
        if let token, token.isExpired(at: moment.now) { expire(now: moment.now) }
        warnOfEnd(now: moment.now)
        if let id = fetching.stuck(at: moment.now) {
            act(.cancelFetch(id))
            fetching.end()
            fail(.stuck, retryAfter: nil, moment)
        }
        if let held, held.wantsRefresh(at: moment.now), nextKind != nil { wantToken(now: moment.now) }
        if stage == .running, !isYielding, fetching.isDue(at: moment.now) { beginFetch() }
        resumeOverdue(now: moment.now)
        if let record = saving.begin(now: moment.now) { act(.resave(record)) }
        if let reading = saving.beginReading(now: moment.now) { act(.read(reading)) }
    }

    /// Earliest time at which `tick` has something to do.
    var nextWake: Instant? {
        guard stage != .stopped else { return nil }
        if isYielding {
            let underWay = fetching.isUnderWay ? fetching.wake : nil
            return [waiters.earliestDeadline, saving.wake, token?.expiresAt, underWay].compactMap { $0 }.min()
        }
        // A fetch that is planned or under way already brings the new token.
        let refreshAt = fetching.isIdle && held?.firstUsedAt != nil && nextKind != nil ? held?.refreshAt : nil
        return [
            waiters.earliestDeadline, saving.wake, token?.expiresAt, endWarningDue, fetching.wake, refreshAt,
        ].compactMap { $0 }.min()
    }

    private mutating func expire(now: Instant) {
        drop(.expired)
        if rejectedUntil == nil { setbacks.rejections.endRow() }
        if nextKind == nil { needAuthentication() }
        if !waiters.isEmpty { wantToken(now: now) }
    }

    private mutating func beginFetch() {
        setbacks.rejections.tried()
        guard let kind = nextKind else {
            fetching.unplan()
            needAuthentication()
            return
        }
        grant.attempts(kind)
        let fetch = fetching.begin(kind)
        act(.fetch(fetch.id, kind))
    }

    /// Notes that the reading of the request's secrets begins.
    /// - Returns: whether the request may go on.
    mutating func prepares(_ id: FetchID, now: Instant) -> Bool { mayGoOn && fetching.prepares(id, now: now) }

    /// Notes that the request is built and waits for a slot.
    /// - Returns: false if the request is no longer needed.
    mutating func queues(_ id: FetchID) -> Bool {
        guard stage == .running, fetching.queues(id) else { return false }
        giveUpUnwanted()
        return fetching.isUnderWay
    }

    /// Notes that the request is sent now.
    /// - Parameters:
    ///   - seed: the configured refresh token, if the request contains it.
    ///   - subject: the person at another client whose sign-in the request uses.
    /// - Returns: whether the request may go on.
    mutating func sends(_ id: FetchID, seed: Secret? = nil, subject: UInt64? = nil, now: Instant) -> Bool {
        mayGoOn && fetching.sends(id, seed: seed, subject: subject, now: now)
    }

    /// After `yield`, only a request that has already started may go on. The object that takes over waits for it.
    private var mayGoOn: Bool { stage == .running && (!isYielding || fetch?.startedAt != nil) }

    /// Cancels a planned fetch, or one that has not started, if `triesUnasked` is false, no caller waits, and there is
    /// no token.
    mutating func giveUpUnwanted() {
        guard !settings.triesUnasked, waiters.isEmpty, token == nil else { return }
        if let fetch {
            if fetch.startedAt == nil { cancelFetch() }
        } else {
            fetching.unplan()
        }
    }

    // MARK: Ending a fetch

    /// Handles the outcome of a fetch. Returns the record to save, if any. The caller saves it, then calls `saved`.
    mutating func answered(_ id: FetchID, _ outcome: Outcome, _ moment: Moment) -> TokenRecord? {
        guard let fetch, fetch.id == id, stage == .running else { return nil }
        switch outcome {
        case .response(let response): return accept(response, fetch, moment)
        case .fault(let fault, let retryAfter):
            fetching.end()
            setbacks.note(fault, at: moment.now)
            if case .refresh = fetch.kind { grant.noteFault(fault) }
            switch (fetch.kind, Self.verdict(on: fault)) {
            case (.refresh(let spent), .grantGone): return loseRefreshToken(spent, moment)
            case (.refresh, .refused) where fault.missesScope && !settings.refreshesWithScope:
                // The configuration leaves the scope out, so the refresh token is not at fault.
                fail(fault, retryAfter: retryAfter, moment)
            case (.refresh, .refused): refreshRefused(fault, retryAfter: retryAfter, moment)
            case (.grant, .grantGone) where settings.needs == .freshSeed,
                (.grant, .refused) where settings.needs == .freshSeed && awaitsStore:
                // The configured refresh token was refused: probably it was exchanged before. It is not sent again.
                grant.spend(fetch.seed)
                failAuthentication(moment)
            case (.grant, .refused) where settings.needs == .freshSeed:
                refreshRefused(fault, retryAfter: retryAfter, moment)
            default: fail(fault, retryAfter: retryAfter, moment)
            }
        case .adopted(let record):
            fetching.end()
            adopt(record, moment)
            if token == nil || !waiters.isEmpty { wantToken(now: moment.now) }
        case .seedSpent:
            fetching.end()
            // The reason why the newest refresh token ended is told first.
            if setbacks.lastFault == nil { setbacks.note(.secret(Self.seedSpent), at: moment.now) }
            failAuthentication(moment)
        }
        tick(moment)
        return nil
    }

    private mutating func accept(_ response: TokenResponse, _ fetch: Fetch, _ moment: Moment) -> TokenRecord? {
        var kept = refreshToken
        if case .refresh(let spent) = fetch.kind { kept = spent }
        // A refresh token of another server or client is not kept.
        if let new = response.enrolment, let own = grant.enrolment, !new.hasSameClient(as: own) { kept = nil }
        let new: AccessToken
        do throws(TokenResponseError) {
            new = try settings.policy.token(
                from: response, askedAt: fetch.startedAt ?? moment.now, keeping: kept,
                granted: fetch.kind == .grant ? [] : grant.scope, moment)
            if new.isExpired(at: moment.now) { throw TokenResponseError.alreadyExpired }
        } catch {
            return reject(response, error, moment)
        }
        grant.renew(by: response, replacing: kept, askedAt: fetch.startedAt ?? moment.now)
        grant.exchanged(fetch.seed, for: response.refreshToken)
        if fetch.kind == .grant { grant.belongs(to: fetch.subject) }
        grant.grants(new.scope)
        if fetch.kind != .grant || response.refreshToken != nil { grant.restoreTrust() }
        fetching.saves(then: .publish(new, refreshed: token != nil || fetch.kind != .grant), now: moment.now)
        return record(new, moment)
    }

    /// Handles an answer with an unusable access token. A rotated refresh token in the answer is saved nevertheless.
    private mutating func reject(
        _ response: TokenResponse, _ error: TokenResponseError, _ moment: Moment
    ) -> TokenRecord? {
        if let rotated = response.refreshToken, rotated != refreshToken {
            grant.renew(by: response, replacing: refreshToken, askedAt: fetch?.startedAt ?? moment.now)
            grant.exchanged(fetch?.seed, for: rotated)
            fetching.saves(then: .fail(.answer(error)), now: moment.now)
            return record(token, moment)
        }
        fetching.end()
        fail(.answer(error), retryAfter: nil, moment)
        tick(moment)
        return nil
    }

    /// Handles the end of saving. After a `fault` the token is used from memory, and the save is retried.
    mutating func saved(_ id: FetchID, _ record: TokenRecord, fault: TokenStoreError?, _ moment: Moment) {
        saving.ended(record, fault: fault, moment)
        guard let fetch, fetch.id == id, case .saving(let after, _) = fetch.phase, stage == .running else { return }
        fetching.end()
        switch after {
        case .publish(let new, let refreshed):
            if new.isExpired(at: moment.now) {
                fail(.answer(.alreadyExpired), retryAfter: nil, moment)
            } else {
                succeeded(now: moment.now)
                let expiresIn = new.left(at: moment.now)
                publish(new, continues: fetch.kind != .grant || !settings.namesIdentityAnew, moment)
                act(
                    .emit(
                        refreshed
                            ? .tokenRefreshed(expiresIn: expiresIn)
                            : .tokenAcquired(expiresIn: expiresIn, stored: false)))
            }
        case .fail(let fault): fail(fault, retryAfter: nil, moment)
        }
        tick(moment)
    }

    private static let seedSpent = SecretProviderError(
        "the configured refresh token was used before, and its successor has ended: configure a new one")

    mutating func succeeded(now: Instant) {
        setbacks.succeeded(at: now)
        fetching.unplan()
        settle()
    }
}
