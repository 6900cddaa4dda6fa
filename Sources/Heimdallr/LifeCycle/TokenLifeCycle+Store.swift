// The client's record in the store: reading, saving, and records of other processes.
extension TokenLifeCycle {
    // MARK: Reading

    /// Handles the result of reading the store. A failure means an unreadable record or an unreachable store.
    mutating func read(_ reading: Reading, _ result: Result<TokenRecord?, TokenStoreError>, _ moment: Moment) {
        var fault: TokenStoreError?
        if case .failure(let error) = result { fault = error }
        let record = (try? result.get()) ?? nil
        switch reading {
        case .start: loaded(record, fault: fault, moment)
        case .repair where fault == nil: reloaded(record, moment)
        case .change where fault == nil: noticed(record, moment)
        case .login: return looked(record, moment)
        case .repair: break
        case .change: saving.noteReading(fault: fault)
        }
        saving.planReading(after: reading == .start ? .repair : reading, hasFailed: fault != nil, moment)
        // Callers may have waited for this reading.
        if stage == .running, token == nil, nextKind == nil, !waiters.isEmpty { needAuthentication() }
    }

    /// Notes that the store has a record of this client, but only for another server or account.
    mutating func foundForeignRecord() { saving.noteForeignRecord() }

    mutating func shareStore() { saving.share() }

    mutating func loaded(_ record: TokenRecord?, fault: TokenStoreError?, _ moment: Moment) {
        guard stage == .loading else { return }
        stage = .running
        saving.noteReading(fault: fault)
        let inherited = saving.takeInherited()
        if var record {
            if !settings.usesStoredToken { record.accessToken = nil }
            takeUp(record, moment)
        }
        takeUp(inherited: inherited, moment)
        if token == nil, isWarm || !waiters.isEmpty { wantToken(now: moment.now) }
        tick(moment)
    }

    /// Takes over the record that the client's previous object could not save. This object may already have started.
    mutating func inherit(_ record: TokenRecord?, _ moment: Moment) {
        if stage == .running { takeUp(inherited: record, moment) } else if let record { saving.inherit(record) }
    }

    private mutating func takeUp(inherited record: TokenRecord?, _ moment: Moment) {
        guard let record, record.revision > revision else { return }
        takeUp(record, moment)
        saving.saveInherited(record, now: moment.now)
    }

    /// Whether no reading of the store has succeeded since the start, and this object has made no record.
    var awaitsStore: Bool { stage == .running && saving.isUnread }

    /// Handles the first successful reading of the store. Ends the failures that the unreadable store caused.
    private mutating func reloaded(_ record: TokenRecord?, _ moment: Moment) {
        guard awaitsStore else { return }
        saving.noteReading(fault: nil)
        guard let record, !fetching.isUnderWay else { return }
        setbacks.forgetFailure()
        fetching.unplan()
        takeUp(record, moment)
        if token == nil, isWarm || !waiters.isEmpty { wantToken(now: moment.now) }
        tick(moment)
    }

    mutating func takeUp(_ record: TokenRecord, _ moment: Moment) {
        saving.takeUp(record.revision, refreshToken: record.refreshToken)
        let isEnrolled = grant.enrolment != nil
        grant.takeUp(record, moment)
        if isEnrolled || grant.enrolment != nil { act(.enrol(grant.enrolment)) }
        guard let stored = record.accessToken(at: moment) else { return }
        // A later revision may hold the same token. It keeps its generation, under which resources may have refused it.
        if let token, token.value == stored.value, !token.isExpired(at: moment.now) { return }
        // A record of another process may come from a new sign-in, here or at the client that the token is made from.
        publish(
            stored, isStored: true, continues: settings.needs != .person && !settings.namesIdentityAnew, moment)
        act(.emit(.tokenAcquired(expiresIn: stored.left(at: moment.now), stored: true)))
    }

    // MARK: Logins at other processes

    /// Reads the store for a login at another process, at most once in five seconds. Called when a token is wanted.
    mutating func lookAgain(now: Instant) {
        if settings.needs == .person, logins.mayLook(now: now) { act(.read(.login)) }
    }

    /// Handles the record that `lookAgain` found. Uses it only if this client has no usable token. A lower revision may
    /// be newer: after a logout, another process may have begun again at 1.
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

    /// Handles the store's record after a notification. An unsaved record of this object is saved first.
    mutating func noticed(_ record: TokenRecord?, _ moment: Moment) {
        guard stage == .running, logins.pending == nil else { return }
        guard saving.unsaved == nil else {
            saving.hurry(now: moment.now)
            return tick(moment)
        }
        storeIsBack()
        // A missing or empty record is a logout for all processes. A lower revision comes from a backup: ignore it.
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

    /// Uses the store's record before a sign-in or a sign-out, if it is later than the record of this object.
    mutating func readAhead(_ record: TokenRecord, _ moment: Moment) {
        // A request under way reads the store itself.
        guard fetch?.startedAt == nil else { return }
        load()
        if stage == .loading { loaded(record, fault: nil, moment) } else { noticed(record, moment) }
    }

    /// Judges the store's record before a request of this kind. The record was read under the lease.
    /// - Returns: the outcome that ends the fetch without a request; `nil`: send the request.
    func outcome(of record: Result<TokenRecord?, TokenStoreError>, before kind: FetchKind) -> Outcome? {
        switch record {
        case .success(let record?):
            // During an outage, two processes may have used the same revision for different records.
            let isOther = saving.isShared && record.revision == revision && record.refreshToken != refreshToken
            return record.revision > revision || isOther ? .adopted(record) : nil
        case .success(nil): return nil
        case .failure(let error):
            // Another process may be able to read this record, and may have used its refresh token.
            let isElsewhere =
                spends(kind) && (error.kind == .unreachable || error.kind == .unreadable && saving.isShared)
            // The configured refresh token was probably exchanged for the refresh token in the record. A
            // second use may revoke both.
            let isSeed = kind == .grant && settings.needs == .freshSeed && revision == 0 && error.kind != .unreadable
            return isElsewhere || isSeed ? .fault(.store(error), retryAfter: nil) : nil
        }
    }

    /// Whether a token request sends a one-time credential.
    func spends(_ kind: FetchKind) -> Bool { kind != .grant || settings.needs == .freshSeed }

    /// Uses another process's record. Drops the current access token if the record does not hold it.
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

    /// Handles an unreachable store. A grant without one-time credentials may still be sent: if another process gets a
    /// token too, that does no harm.
    /// - Returns: kind of the request that may still be sent; `nil`: none.
    mutating func storeIsAway(_ fault: TokenStoreError, before id: FetchID) -> FetchKind? {
        saving.noteReading(fault: fault)
        guard settings.needs == .nobody else { return nil }
        fetching.change(id, to: .grant)
        return .grant
    }

    /// Notes that the store is reachable again. Ends the failure that the outage caused.
    mutating func storeIsBack() {
        guard saving.away != nil else { return }
        saving.noteReached()
        if case .unavailable(.store) = failure?.kind { setbacks.forgetFailure() }
    }

    // MARK: Saving

    mutating func record(_ token: AccessToken?, _ moment: Moment) -> TokenRecord {
        let revision = saving.nextRevision()
        var record =
            token.map { TokenRecord($0, revision: revision, moment) }
            ?? TokenRecord(
                revision: revision, accessToken: nil, issuedAt: moment.wallClock, expiresAt: moment.wallClock,
                refreshToken: nil)
        record.refreshToken = refreshToken
        record.scope = token?.scope ?? grant.scope
        record.signIn = grant.signIn
        record.refreshTokenLife = grant.life?.record(moment)
        record.enrolment = grant.enrolment?.stored
        record.spentSeeds = grant.spentSeeds
        record.subject = grant.subject
        return record
    }

    /// Returns the record after a sign-out.
    /// - Parameter stored: the store's record, perhaps a later one of another process.
    mutating func recordWithoutTokens(over stored: TokenRecord?, _ moment: Moment) -> TokenRecord {
        if let stored {
            grant.merge(stored.spentSeeds)
            saving.takeUp(max(revision, stored.revision))
        }
        return record(nil, moment)
    }

    /// Uses another process's later record, over which the store refused to save. Drops the token that was not saved.
    mutating func superseded(by record: TokenRecord, _ moment: Moment) {
        guard stage == .running else { return }
        if case .saving = fetch?.phase { fetching.end() } else { cancelFetch() }
        logins.forget()
        adopt(record, moment)
        tick(moment)
    }

    /// Handles the end of a repeated save.
    mutating func resaved(_ record: TokenRecord, fault: TokenStoreError?, _ moment: Moment) {
        saving.ended(record, fault: fault, moment)
    }
}
