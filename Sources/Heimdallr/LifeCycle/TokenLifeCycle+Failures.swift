// Failed token requests: the next attempt, and the callers that it does not help.
extension TokenLifeCycle {
    /// Remembers it, plans the next attempt, and sends away whom that would not help.
    mutating func fail(_ fault: TokenEndpointFault, retryAfter: Duration?, _ moment: Moment) {
        let permanent = fault.looksPermanent
        remember(
            permanent ? .refused(fault) : .unavailable(fault), backoff: permanent ? .permanent : .transient,
            retryAfter: retryAfter, moment)
    }

    /// Only a person helps, but a new refresh token may be handed in, or a doubtful one may be good again.
    mutating func failAuthentication(_ moment: Moment) {
        remember(.needsAuthentication, backoff: .permanent, retryAfter: nil, moment)
        needAuthentication()
    }

    private mutating func remember(
        _ kind: Setbacks.Failure.Kind, backoff: Backoff, retryAfter: Duration?, _ moment: Moment
    ) {
        let retryAt = moment.now + backoff.delay(attempt: setbacks.inARow + 1, random: moment.random())
        let keepsWaiters = if case .unavailable = kind { true } else { false }
        remember(kind, retryAt: retryAt, retryAfter: retryAfter, now: moment.now, keepsWaiters: keepsWaiters)
    }

    /// - Parameter keepsWaiters: those stay for whom the retry comes early enough.
    private mutating func remember(
        _ kind: Setbacks.Failure.Kind, retryAt earliest: Instant, retryAfter: Duration?, now: Instant,
        keepsWaiters: Bool
    ) {
        hasSettled = true
        var retryAt = fetching.earliest(from: earliest)
        let serverWants = retryAfter.map { now + min(max($0, .zero), Self.maxRetryAfter) }
        if let serverWants { retryAt = max(retryAt, serverWants) }
        let failure = Setbacks.Failure(kind: kind, at: now, retryAt: retryAt, serverWants: serverWants)
        setbacks.failed(failure)
        fetching.replan(for: retryAt)
        let error = error(for: failure, now: now)
        if kind != .needsAuthentication { act(.emit(.tokenFailed(error))) }
        if !isRefusalInDoubt { resumeReplacing(error) }
        if keepsWaiters {
            // One refresh for each request: a server that hands out expired tokens is not asked again for the same one.
            let isFutile = kind == .unavailable(.answer(.alreadyExpired))
            resume(waiters.removeAll { isFutile || $0.deadline < retryAt }, .failure(error))
        } else {
            resumeAll(.failure(error))
        }
        giveUpUnwanted()
    }

    /// Longest wait that a server can demand: no client stays silent for good.
    static let maxRetryAfter = Duration.seconds(3600)

    /// Announces, once until the next token, that a person has to log in. Not while the store is away: its record may
    /// hold a login.
    mutating func needAuthentication() {
        hasSettled = true
        if awaitsStore, let away = saving.away {
            if !fetching.isUnderWay {
                suspicions.giveUp()
                resumeAll(.failure(.tokenEndpointUnavailable(.store(away), retryAfter: Self.storePause)))
            }
            return
        }
        if !announcedNeed {
            announcedNeed = true
            act(.emit(.needsAuthentication))
        }
        if !fetching.isUnderWay {
            suspicions.giveUp()
            resumeAll(.failure(.needsAuthentication))
        }
    }

    /// A store that is away is asked again after this.
    static let storePause = Duration.seconds(5)

    enum Verdict {
        case grantGone
        /// `invalid_request`, or no error code: some servers mean `invalid_grant`, others anything.
        case refused
        case other
    }

    /// Whether the server may mean that the refresh token is spent, so that another process may have the next one.
    static func mayMeanSpent(_ fault: TokenEndpointFault) -> Bool { verdict(on: fault) != .other }

    static func verdict(on fault: TokenEndpointFault) -> Verdict {
        switch fault {
        case .refused(let error) where error.code == .invalidGrant && fault.looksPermanent: .grantGone
        case .refused(let error) where [400, 401].contains(error.status) && error.code != .invalidClient: .refused
        case .status(400), .status(401): .refused
        default: .other
        }
    }

    /// Handles a refusal without a cause. The second one counts as `invalid_grant`; the refresh token is kept, and
    /// tried at long intervals. The second attempt comes as early as it counts.
    mutating func refreshRefused(_ fault: TokenEndpointFault, retryAfter: Duration?, _ moment: Moment) {
        if let retryAt = grant.refused(at: moment.now) {
            remember(.refused(fault), retryAt: retryAt, retryAfter: retryAfter, now: moment.now, keepsWaiters: true)
        } else if settings.needs == .person || grant.lastAttemptWasGrant {
            failAuthentication(moment)
        } else {
            wantToken(now: moment.now)
        }
    }

    /// A refresh was refused once: whether it is the end is known in a moment.
    var isRefusalInDoubt: Bool {
        guard let failure, case .refused = failure.kind else { return false }
        return grant.isInDoubt(until: failure.retryAt)
    }

    /// `invalid_grant`: the only answer that discards a refresh token.
    mutating func loseRefreshToken(_ spent: Secret, _ moment: Moment) -> TokenRecord? {
        grant.lose(spent)
        echoes.note(spent)
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
