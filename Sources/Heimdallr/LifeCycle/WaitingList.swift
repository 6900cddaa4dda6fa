/// Callers that wait for a token, each until its own deadline. A caller that leaves the list gets exactly one outcome.
struct WaitingList: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias ID = UInt64

    struct Waiter: Sendable {
        var deadline: Instant
        /// Generation of an unwanted token. Only a newer token is useful to this caller.
        var unwanted: UInt64?
    }

    private var waiters: [ID: Waiter] = [:]
    /// Lower bound of all deadlines. It may be too early after a caller has left.
    private(set) var earliestDeadline: Instant?

    var isEmpty: Bool { waiters.isEmpty }
    var count: Int { waiters.count }
    var keys: some Collection<ID> { waiters.keys }

    mutating func add(_ id: ID, until deadline: Instant, insteadOf unwanted: UInt64?) {
        waiters[id] = Waiter(deadline: deadline, unwanted: unwanted)
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
    }

    /// Removes a caller. Returns whether the caller was waiting.
    mutating func remove(_ id: ID) -> Bool { waiters.removeValue(forKey: id) != nil }

    /// Removes and returns the waiters that fulfil the condition.
    mutating func removeAll(where isMeant: (Waiter) -> Bool = { _ in true }) -> [ID] {
        let leaving = waiters.filter { isMeant($0.value) }.map(\.key)
        for id in leaving { waiters[id] = nil }
        earliestDeadline = waiters.values.map(\.deadline).min()
        return leaving
    }

    /// Removes and returns the waiters whose deadline has passed.
    mutating func removeOverdue(at now: Instant) -> [ID] {
        guard let earliestDeadline, earliestDeadline <= now else { return [] }
        return removeAll { $0.deadline <= now }
    }
}
