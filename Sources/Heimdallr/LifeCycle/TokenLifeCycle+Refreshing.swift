extension TokenLifeCycle {
    /// Waits for a newer token until `deadline`. The outcome is that of the request under way, or of one that begins now.
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
        // `Retry-After` may be after the deadline.
        guard let due = fetching.dueAt, due >= deadline, waiters.remove(id) else { return }
        let error = failure.map { self.error(for: $0, now: moment.now) }
        act(.resume(id, .failure(error ?? .deadlineExceeded(retryAfter: moment.now.duration(to: due)))))
    }
}
