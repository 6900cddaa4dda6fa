extension TokenLifeCycle {
    func status(client: String, grantType: String, loginMethod: LoginMethod? = nil, now: Instant) -> HeimdallrStatus {
        let usable = token.flatMap { $0.isExpired(at: now) ? nil : $0 }
        var status = HeimdallrStatus(
            client: client, grantType: grantType, loginMethod: loginMethod,
            signedInAs: token != nil || refreshToken != nil ? grant.signIn?.name : nil, scope: token?.scope ?? [],
            state: state(hasToken: usable != nil, now: now),
            expiresIn: usable?.left(at: now), hasRefreshToken: refreshToken != nil,
            refreshTokenExpiresIn: grant.life.map { max(.zero, now.duration(to: $0.endsAt)) },
            sinceLastSuccess: setbacks.lastSuccessAt.map { $0.duration(to: now) },
            lastError: failure.map { error(for: $0, now: now) },
            sinceLastError: failure.map { $0.at.duration(to: now) },
            nextAttemptIn: fetching.dueAt.map { max(.zero, now.duration(to: $0)) }, waiters: waiters.count,
            storeFault: saving.fault?.description, hasSettled: hasSettled)
        // The cause is shown even while the old token is still valid.
        if nextKind == nil || failure?.kind == .needsAuthentication, let lastFault = setbacks.lastFault {
            status.cause = lastFault.fault
            status.sinceCause = lastFault.at.duration(to: now)
        }
        if status.signedInAs != nil { status.formerlySignedInAs = grant.formerPerson }
        status.isTokenRefused = isTokenInvalid
        status.lastLoginError = logins.failure?.error
        status.sinceLastLoginError = logins.failure.map { $0.at.duration(to: now) }
        status.endsBy = usable?.endsBy
        status.hasForeignRecord = saving.hasForeignRecord
        if status.lastError == nil, let rejectedUntil, rejectedUntil > now {
            status.lastError = .rejectedByResource(retryAfter: now.duration(to: rejectedUntil))
        }
        return status
    }

    private func state(hasToken: Bool, now: Instant) -> HeimdallrStatus.State {
        switch stage {
        case .new, .loading: return .starting
        case .stopped: return .stopped
        case .running: break
        }
        // A person is told at once, not when the last token of a lost sign-in ends.
        if hasToken { return isTokenInvalid || announcedNeed ? .needsAuthentication : .ready }
        if fetching.isUnderWay { return .fetching }
        if failure?.kind == .needsAuthentication || nextKind == nil { return .needsAuthentication }
        if let failure, failure.retryAt > now { return .backingOff }
        if let rejectedUntil, rejectedUntil > now { return .backingOff }
        return fetching.dueAt != nil || !waiters.isEmpty ? .fetching : .idle
    }
}
