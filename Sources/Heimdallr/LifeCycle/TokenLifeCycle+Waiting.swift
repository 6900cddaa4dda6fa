extension TokenLifeCycle {
    /// Registers a caller that waits for a token until `deadline`. The caller is resumed exactly once, perhaps at once.
    /// - Parameters:
    ///   - resource: resource at which the token must not be suspect.
    ///   - refused: generation of a token that was refused; only a newer token helps.
    mutating func wait(
        _ id: WaiterID, for resource: String? = nil, insteadOf refused: UInt64? = nil, until deadline: Instant,
        _ moment: Moment
    ) {
        let isSuspect = token.map { suspicions.isSuspect($0.generation, at: resource) } ?? false
        let unwanted = isSuspect ? token?.generation : refused
        // Only a former token, in a pause of the current one, has a lower generation than the unwanted token.
        if let token = use(moment), token.generation != unwanted {
            act(.resume(id, .success(token)))
            return
        }
        if let error = refusal(now: moment.now, until: deadline) {
            if error == .needsAuthentication, token == nil {
                needAuthentication()
                lookAgain(now: moment.now)
            }
            act(.resume(id, .failure(error)))
            return
        }
        waiters.add(id, until: deadline, insteadOf: unwanted)
        load()
        wantToken(now: moment.now)
        tick(moment)
    }

    /// Removes a cancelled caller. A token request that was already sent goes on.
    mutating func leave(_ id: WaiterID) {
        guard waiters.remove(id) else { return }
        act(.resume(id, .failure(.cancelled)))
        giveUpUnwanted()
    }

    /// Returns the error if waiting would be useless; `nil`: wait.
    /// - Parameter deadline: end of the wait; `nil`: the caller does not wait for faults that pass.
    func refusal(now: Instant, until deadline: Instant? = nil) -> HeimdallrError? {
        guard stage != .stopped else { return .stopped }
        guard stage == .running, !fetching.isUnderWay else { return nil }
        if isYielding { return Self.hasYielded }
        let mayPass = mayPass(before: deadline, now: now)
        if let failure, failure.retryAt > now, !isRefusalInDoubt, !mayPass { return error(for: failure, now: now) }
        if let rejectedUntil, rejectedUntil > now {
            return .rejectedByResource(retryAfter: now.duration(to: rejectedUntil))
        }
        return nextKind == nil && !mayPass ? errorWithoutGrant : nil
    }

    func error(for failure: Setbacks.Failure, now: Instant) -> HeimdallrError {
        let retryAfter = max(.zero, now.duration(to: failure.retryAt))
        return switch failure.kind {
        case .unavailable(let fault): .tokenEndpointUnavailable(fault, retryAfter: retryAfter)
        case .refused(let fault): .clientRefused(fault, retryAfter: retryAfter)
        case .needsAuthentication: .needsAuthentication
        }
    }

    mutating func resumeAll(_ result: Result<AccessToken, HeimdallrError>) { resume(waiters.removeAll(), result) }

    mutating func resume(_ ids: [WaiterID], _ result: Result<AccessToken, HeimdallrError>) {
        for id in ids { act(.resume(id, result)) }
    }

    mutating func resumeOverdue(now: Instant) {
        let overdue = waiters.removeOverdue(at: now)
        guard !overdue.isEmpty else { return }
        resume(overdue, .failure(overdueError(now: now)))
        giveUpUnwanted()
    }

    private func overdueError(now: Instant) -> HeimdallrError {
        if let failure { return error(for: failure, now: now) }
        if nextKind == nil { return errorWithoutGrant }
        let untilFetch = fetching.dueAt.map { now.duration(to: $0) } ?? .zero
        return .deadlineExceeded(retryAfter: max(settings.minInterval, untilFetch))
    }
}
