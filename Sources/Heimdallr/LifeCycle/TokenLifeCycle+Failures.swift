// Failed token requests: plans the next attempt, and fails the callers that can't wait for it.
extension TokenLifeCycle {
    /// Records the fault and plans the next attempt. Fails all callers if the fault looks permanent; otherwise only
    /// callers that replace a refused token, or whose deadline is before the next attempt.
    mutating func fail(_ fault: TokenEndpointFault, retryAfter: Duration?, _ moment: Moment) {
        handleFailure(fault.looksPermanent ? .refused(fault) : .unavailable(fault), retryAfter: retryAfter, moment)
    }

    /// Announces that a login is needed. Still plans an attempt: with the refresh token in doubt (rule 4), or with the
    /// configured one, read again.
    mutating func failAuthentication(_ moment: Moment) {
        handleFailure(.needsAuthentication, retryAfter: nil, moment)
        needAuthentication()
    }

    /// - Parameter planned: a fixed time of the next attempt, for which callers may wait; `nil`: the backoff's time.
    private mutating func handleFailure(
        _ kind: Setbacks.Failure.Kind, retryAt planned: Instant? = nil, retryAfter: Duration?, _ moment: Moment
    ) {
        settle()
        let now = moment.now
        // If a secret or a certificate has changed since the request began, the next request may succeed at once.
        let planned = planned ?? (fetching.takeRepair() ? setbacks.repair(now: now) : nil)
        let backoff = if case .unavailable = kind { Backoff.transient } else { Backoff.permanent }
        let next = planned ?? now + backoff.delay(attempt: setbacks.inARow + 1, random: moment.random())
        var retryAt = fetching.earliest(from: next)
        let serverWants = retryAfter.map { now + min(max($0, .zero), Self.maxRetryAfter) }
        if let serverWants { retryAt = max(retryAt, serverWants) }
        let failure = Setbacks.Failure(kind: kind, at: now, retryAt: retryAt, serverWants: serverWants)
        setbacks.failed(failure)
        fetching.replan(for: retryAt)
        let error = error(for: failure, now: now)
        if kind != .needsAuthentication { act(.emit(.tokenFailed(error))) }
        if !isRefusalInDoubt { resumeReplacing(error) }
        if kind.mayPass || planned != nil {
            resume(waiters.removeAll { $0.deadline < retryAt }, .failure(error))
        } else {
            resumeAll(.failure(error))
        }
        giveUpUnwanted()
    }

    /// Longest wait that a server can demand.
    static let maxRetryAfter = Duration.seconds(3600)

    /// Announces once that a login is needed. An unreachable store that was never read may hold a login, so nothing is
    /// announced then, and callers wait for the next reading. Fails all other callers, unless a fetch is under way.
    mutating func needAuthentication() {
        settle()
        let error = errorWithoutGrant
        if error == .needsAuthentication { announceNeed() }
        guard !fetching.isUnderWay else { return }
        suspicions.giveUp()
        let saving = saving
        resume(waiters.removeAll { !saving.mayRead(before: $0.deadline) }, .failure(error))
    }

    /// Whether the next attempt, or the next reading of the store, may bring a token before `deadline`.
    func mayPass(before deadline: Instant?, now: Instant) -> Bool {
        guard let deadline else { return false }
        if let failure, failure.retryAt > now { return failure.kind.mayPass && failure.retryAt < deadline }
        return nextKind == nil && saving.mayRead(before: deadline)
    }

    /// Ends the backoff, because a secret, a key or a certificate of this client has changed. Keeps the minimum interval
    /// and the server's `Retry-After`.
    mutating func repaired(_ moment: Moment) {
        fetching.noteRepair()
        guard setbacks.endBackoff(now: moment.now), nextKind != nil, settings.triesUnasked || !waiters.isEmpty else {
            return
        }
        wantToken(now: moment.now)
        tick(moment)
    }

    /// Error for callers when this client can send no token request.
    var errorWithoutGrant: HeimdallrError {
        guard awaitsStore, let away = saving.away else { return .needsAuthentication }
        return .tokenEndpointUnavailable(.store(away), retryAfter: .seconds(5))
    }

    enum Verdict {
        case grantGone
        /// A refusal without a clear cause. Some servers answer 400, 401 or a word of their own, even in a 200, instead
        /// of `invalid_grant`.
        case refused
        case other
    }

    /// Whether the fault may mean that another process has already used the refresh token.
    static func mayMeanSpent(_ fault: TokenEndpointFault) -> Bool { verdict(on: fault) != .other }

    static func verdict(on fault: TokenEndpointFault) -> Verdict {
        switch fault {
        case .refused(let error) where error.code == .invalidGrant && fault.looksPermanent: .grantGone
        // The refresh token belongs to a former server or a former client.
        case .discovery(.movedIssuer), .discovery(.clientForgotten): .grantGone
        case .refused(let error) where [400, 401].contains(error.status) && error.code != .invalidClient: .refused
        case .refused(let error) where fault.looksPermanent && !error.code.blamesClient: .refused
        case .status(400, _), .status(401, _): .refused
        default: .other
        }
    }

    /// Handles a refusal without a clear cause. The first refusal plans a second attempt. The second refusal counts
    /// as `invalid_grant`, but the refresh token is kept and tried again at long intervals.
    mutating func refreshRefused(_ fault: TokenEndpointFault, retryAfter: Duration?, _ moment: Moment) {
        if let retryAt = grant.refused(at: moment.now) {
            handleFailure(.refused(fault), retryAt: retryAt, retryAfter: retryAfter, moment)
        } else if settings.needs == .person || grant.lastAttemptWasNewGrant {
            failAuthentication(moment)
        } else {
            wantToken(now: moment.now)
        }
    }

    /// Whether one refresh was refused without a clear cause, and the second attempt has not decided yet.
    var isRefusalInDoubt: Bool {
        guard let failure, case .refused = failure.kind else { return false }
        return grant.isInDoubt(until: failure.retryAt)
    }

    /// Discards the refresh token (rule 4). Announces a login, or plans a fetch. Returns the record to save.
    mutating func loseRefreshToken(_ spent: Secret, _ moment: Moment) -> TokenRecord? {
        grant.lose(spent)
        seen.note(spent)
        if settings.needs == .person {
            act(.emit(.tokenLost(.grantGone)))
            needAuthentication()
        } else {
            wantToken(now: moment.now)
        }
        tick(moment)
        return record(token, moment)
    }
}
