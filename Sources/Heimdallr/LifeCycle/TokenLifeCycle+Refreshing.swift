extension TokenLifeCycle {
    /// Waits for a newer token until `deadline`. Uses the outcome of the token request under way, or begins one.
    mutating func waitForRefresh(_ id: WaiterID, until deadline: Instant, _ moment: Moment) {
        guard stage != .stopped else { return act(.resume(id, .failure(.stopped))) }
        load()
        if stage == .running, !fetching.isUnderWay, logins.pending == nil, nextKind == nil {
            return act(.resume(id, .failure(.needsAuthentication)))
        }
        // Generations begin at 1, so 0 means any token.
        waiters.add(id, until: deadline, insteadOf: token?.generation ?? 0)
        refreshNow(moment)
        // If the next request is allowed only after the deadline, this caller fails now.
        guard let due = fetching.dueAt, due >= deadline, waiters.remove(id) else { return }
        let error = failure.map { self.error(for: $0, now: moment.now) }
        act(.resume(id, .failure(error ?? .deadlineExceeded(retryAfter: moment.now.duration(to: due)))))
    }

    /// Requests a new token without waiting for a backoff. Keeps the minimum interval and the server's `Retry-After`.
    mutating func refreshNow(_ moment: Moment) {
        guard stage == .running, !isYielding, !fetching.isUnderWay, logins.pending == nil, nextKind != nil else {
            return
        }
        fetching.plan(from: max(moment.now, failure?.serverWants ?? moment.now))
        tick(moment)
    }

    /// Returns a fault if the refresh token is not for the request's server and client (RFC 6749 section 10.4).
    /// - Parameter enrolment: server and client of the request; `nil`: both are configured.
    func fault(of kind: FetchKind, at enrolment: Enrolment?) -> DiscoveryFault? {
        guard case .refresh(let token) = kind, let enrolment else { return nil }
        guard token == refreshToken, let own = grant.enrolment else { return .notEnrolled }
        guard !own.hasSameClient(as: enrolment) else { return nil }
        return ServerMetadata.isSame(own.issuer, enrolment.issuer)
            ? .clientForgotten : .moved(from: own.issuer, to: enrolment.issuer)
    }

    // MARK: Expiry of the refresh token

    /// Time at which `warnOfEnd` has something to do; `nil`: nothing is due, or a refresh is planned or under way.
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

    /// Before the refresh token expires, plans one refresh even if no caller wants a token. Many servers then extend
    /// the session. If the server did not, or if the session is short, announces the expiry.
    mutating func warnOfEnd(now: Instant) {
        guard let due = endWarningDue, due <= now, let life = grant.life else { return }
        if life.stage == .quiet, life.isWorthKeeping, now < life.endsAt {
            grant.note(.tried)
            wantToken(now: now)
            if fetching.isUnderWay || fetching.dueAt != nil { return }
        }
        grant.note(.announced)
        if now < life.endsAt { act(.emit(.refreshTokenEnding(expiresIn: now.duration(to: life.endsAt)))) }
    }
}
