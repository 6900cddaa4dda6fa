extension TokenLifeCycle {
    /// A caller wants a newer token than the one in use, and waits for it until `deadline`. Resumed exactly once, with the
    /// first outcome: that of the request that is under way, or else of one that is begun as early as it may be.
    mutating func waitForRefresh(_ id: WaiterID, until deadline: Instant, _ moment: Moment) {
        switch stage {
        case .stopped: return act(.resume(id, .failure(.stopped)))
        case .new:
            stage = .loading
            act(.load)
        case .loading, .running: break
        }
        if stage == .running, !fetching.isUnderWay, logins.pending == nil, nextKind == nil {
            return act(.resume(id, .failure(.needsAuthentication)))
        }
        // No token's generation is 0.
        waiters.add(id, until: deadline, insteadOf: token?.generation ?? 0)
        refreshNow(moment)
        // A `Retry-After` may be longer than the caller waits.
        guard let due = fetching.dueAt, due >= deadline, waiters.remove(id) else { return }
        let error = failure.map { self.error(for: $0, now: moment.now) }
        act(.resume(id, .failure(error ?? .deadlineExceeded(retryAfter: moment.now.duration(to: due)))))
    }
}
