// One token request, from the store's lease to the saved record. Runs in a separate task.
extension Heimdallr {
    /// Makes a token request under the lease, so that no other process spends the same refresh token.
    func fetch(_ id: UInt64, _ planned: TokenLifeCycle.FetchKind) async {
        defer { ended(id) }
        guard let turn = await turns.acquire() else { return }
        defer { turns.release(turn) }
        var kind = planned
        var lease: (any TokenStoreLease)?
        do {
            // An unsaved record is saved first. If another process has saved a later record, the fetch ends.
            if look({ $0.saving.isShared }), try await !settleUnsaved() { return }
            lease = try await store.lease(client: recordName, unlessLaterThan: look { $0.revision })
            apply { life, _ in life.storeIsBack() }
        } catch let error as TokenStoreError where error.kind == .busy {
            // Another process may be spending our refresh token.
            await finish(id, .fault(.store(error), retryAfter: nil))
            return
        } catch let error as TokenStoreError where error.kind == .unreachable {
            guard let other = apply({ life, _ in life.storeIsAway(error, before: id) }) else {
                await finish(id, .fault(.store(error), retryAfter: nil))
                return
            }
            kind = other
        } catch {
            // A faulty store can't exclude other processes. The request goes on, because callers need a token.
        }
        await fetchHoldingStore(id, kind, lease)
        await lease?.release()
    }

    private func fetchHoldingStore(
        _ id: UInt64, _ kind: TokenLifeCycle.FetchKind, _ lease: (any TokenStoreLease)?
    ) async {
        if await adoptNewer(id, kind) { return }
        var outcome = await ask(id, kind, lease)
        // If the answer was lost, the server may have rotated the refresh token. Some servers accept the former refresh
        // token once more for a short time. So the owner of the lease sends the request again at once.
        if lease != nil, kind != .grant, case .fault(.network(let fault), _) = outcome,
            [.cut, .timeout].contains(fault)
        {
            outcome = await ask(id, kind, lease, isRetry: true)
        }
        guard let outcome else { return }
        // After a refusal: if the lease was lost, another process may have used the refresh token and saved a new one.
        if kind != .grant, case .fault(let fault, _) = outcome, TokenLifeCycle.mayMeanSpent(fault),
            await adoptNewer(id, kind)
        {
            return
        }
        await finish(id, outcome)
    }

    /// Reads the store. A newer record, or a fault that forbids the request, ends the fetch. Returns whether it ended.
    private func adoptNewer(_ id: UInt64, _ kind: TokenLifeCycle.FetchKind) async -> Bool {
        let record = await stored()
        guard let outcome = look({ $0.outcome(of: record, before: kind) }) else { return false }
        await finish(id, outcome)
        return true
    }

    /// Sends one token request and reports it. Returns `nil` if the fetch was cancelled or has ended.
    private func ask(
        _ id: UInt64, _ kind: TokenLifeCycle.FetchKind, _ lease: (any TokenStoreLease)?, isRetry: Bool = false
    ) async -> TokenLifeCycle.Outcome? {
        // The fetch's `patience` begins here, so that it limits the reading of the secrets too.
        guard apply({ $0.prepares(id, now: $1.now) }) else { return nil }
        var prepared: TokenRequests.Prepared
        // Read first: if the person changes meanwhile, the token counts as the former person's, and goes.
        let subject = subject?()?.identity
        let slot: TokenRequestLimiter.Slot?
        do {
            let scope = look { $0.grant.scopeOfRefresh(by: requests) }
            prepared = try await requests.prepare(kind, scope: scope)
            // A retry stays marked as sent: `drain(within:)` has to wait for the retry, which may bring the new tokens.
            guard isRetry || apply({ life, _ in life.queues(id) }) else { return nil }
            slot = try await requests.slot(for: &prepared)
        } catch {
            let outcome = TokenLifeCycle.Outcome.fault(error, retryAfter: nil)
            report(outcome, kind == .grant ? requests.grant.type : "refresh_token", since: clock.now())
            return outcome
        }
        guard let slot else { return nil }
        defer { requests.httpClient.release(slot) }
        let (spent, secrets) = look { ($0.grant.spentSeeds, $0.secretsToHide) }
        if let seed = prepared.seed, spent.contains(seed) { return .seedSpent }
        let enrolment = prepared.enrolment
        if let fault = look({ $0.fault(of: kind, at: enrolment) }) {
            return .fault(.discovery(fault), retryAfter: nil)
        }
        if look({ $0.spends(kind) }), let lease, await !lease.isHeld() {
            if await adoptNewer(id, kind) { return nil }
            let error = TokenStoreError("the store gave this client's lease to another process", kind: .busy)
            return .fault(.store(error), retryAfter: nil)
        }
        guard apply({ $0.sends(id, seed: prepared.seed, subject: subject, now: $1.now) }) else { return nil }
        let begin = clock.now()
        var outcome = await requests.perform(prepared, hiding: secrets, wallClock: clock.wallClock)
        if case .response = outcome, hasOtherSubject(than: subject) {
            outcome = .fault(.secret(SecretProviderError("the sign-in has changed meanwhile")), retryAfter: nil)
        }
        report(outcome, prepared.grantType, since: begin)
        return outcome
    }

    func finish(_ id: UInt64, _ outcome: TokenLifeCycle.Outcome) async {
        let record = apply { $0.answered(id, outcome, $1) }
        guard let record else { return }
        let saved = await save(record)
        if !saved.isSuperseded { apply { $0.saved(id, record, fault: saved.fault, $1) } }
    }

    func report(_ outcome: TokenLifeCycle.Outcome, _ grantType: String, since begin: ContinuousClock.Instant) {
        let moment = Moment(clock)
        let policy = look { $0.settings.policy }
        onTokenRequest?(
            TokenRequestReport(
                client: name, grantType: grantType,
                result: TokenRequestReport.Result(outcome, by: policy, askedAt: begin, moment),
                duration: begin.duration(to: moment.now)))
    }
}
