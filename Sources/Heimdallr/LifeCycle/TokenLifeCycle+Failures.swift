// Failed token requests: the next attempt, and the callers that it does not help.
extension TokenLifeCycle {
    /// Remembers the fault, plans the next attempt, and resumes the callers that it does not help.
    mutating func fail(_ fault: TokenEndpointFault, retryAfter: Duration?, _ moment: Moment) {
        remember(fault.looksPermanent ? .refused(fault) : .unavailable(fault), retryAfter: retryAfter, moment)
    }

    /// Announces that only a login helps. Tries again later: the configured refresh token may change.
    mutating func failAuthentication(_ moment: Moment) {
        remember(.needsAuthentication, retryAfter: nil, moment)
        needAuthentication()
    }

    /// - Parameter planned: time of the next attempt, for which callers stay; `nil`: by the backoff of this kind of failure.
    private mutating func remember(
        _ kind: Setbacks.Failure.Kind, retryAt planned: Instant? = nil, retryAfter: Duration?, _ moment: Moment
    ) {
        settle()
        let now = moment.now
        let isPassing = if case .unavailable = kind { true } else { false }
        let backoff = isPassing ? Backoff.transient : .permanent
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
        if isPassing || planned != nil {
            // A server that hands out expired tokens is asked once for each request.
            let isFutile = kind == .unavailable(.answer(.alreadyExpired))
            resume(waiters.removeAll { isFutile || $0.deadline < retryAt }, .failure(error))
        } else {
            resumeAll(.failure(error))
        }
        giveUpUnwanted()
    }

    /// Longest wait that a server can demand.
    static let maxRetryAfter = Duration.seconds(3600)

    /// Announces once that a login is needed, until the next token. Waits while the store is unavailable: its record may have a
    /// login.
    mutating func needAuthentication() {
        settle()
        let error = errorWithoutGrant
        if error == .needsAuthentication { announceNeed() }
        guard !fetching.isUnderWay else { return }
        suspicions.giveUp()
        resumeAll(.failure(error))
    }

    /// Error of a client that can send no token request.
    var errorWithoutGrant: HeimdallrError {
        guard awaitsStore, let away = saving.away else { return .needsAuthentication }
        return .tokenEndpointUnavailable(.store(away), retryAfter: .seconds(5))
    }

    enum Verdict {
        case grantGone
        /// `invalid_request`, or no error code. Some servers mean `invalid_grant`.
        case refused
        case other
    }

    /// Whether the refresh token may be spent, so that another process may have the next one.
    static func mayMeanSpent(_ fault: TokenEndpointFault) -> Bool { verdict(on: fault) != .other }

    static func verdict(on fault: TokenEndpointFault) -> Verdict {
        switch fault {
        case .refused(let error) where error.code == .invalidGrant && fault.looksPermanent: .grantGone
        // The tokens belong to another server or client.
        case .discovery(.movedIssuer), .discovery(.clientForgotten): .grantGone
        case .refused(let error) where [400, 401].contains(error.status) && error.code != .invalidClient: .refused
        case .status(400), .status(401): .refused
        default: .other
        }
    }

    /// Handles a refusal without a cause. The second one counts as `invalid_grant`, but the refresh token is kept and tried at
    /// long intervals.
    mutating func refreshRefused(_ fault: TokenEndpointFault, retryAfter: Duration?, _ moment: Moment) {
        if let retryAt = grant.refused(at: moment.now) {
            remember(.refused(fault), retryAt: retryAt, retryAfter: retryAfter, moment)
        } else if settings.needs == .person || grant.lastAttemptWasGrant {
            failAuthentication(moment)
        } else {
            wantToken(now: moment.now)
        }
    }

    /// Whether a refresh was refused once, and the second attempt decides.
    var isRefusalInDoubt: Bool {
        guard let failure, case .refused = failure.kind else { return false }
        return grant.isInDoubt(until: failure.retryAt)
    }

    /// `invalid_grant`: the only answer that discards a refresh token.
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
