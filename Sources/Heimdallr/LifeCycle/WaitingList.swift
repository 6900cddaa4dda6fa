/// Callers that wait for a token, each until its deadline. Each gets one outcome when it leaves the list.
struct WaitingList: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias ID = UInt64

    struct Waiter: Sendable {
        var deadline: Instant
        /// Only a newer generation than this one is useful.
        var unwanted: UInt64?
    }

    private var waiters: [ID: Waiter] = [:]
    /// No deadline is earlier; the first may be later.
    private(set) var earliestDeadline: Instant?

    var isEmpty: Bool { waiters.isEmpty }
    var count: Int { waiters.count }
    var keys: some Collection<ID> { waiters.keys }

    mutating func add(_ id: ID, until deadline: Instant, insteadOf unwanted: UInt64?) {
        waiters[id] = Waiter(deadline: deadline, unwanted: unwanted)
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
    }

    /// - Returns: whether the caller was there.
    mutating func remove(_ id: ID) -> Bool { waiters.removeValue(forKey: id) != nil }

    /// Removes the waiters that fulfil the condition.
    mutating func removeAll(where isMeant: (Waiter) -> Bool = { _ in true }) -> [ID] {
        let leaving = waiters.filter { isMeant($0.value) }.map(\.key)
        for id in leaving { waiters[id] = nil }
        earliestDeadline = waiters.values.map(\.deadline).min()
        return leaving
    }

    /// Removes the waiters after their deadline.
    mutating func removeOverdue(at now: Instant) -> [ID] {
        guard let earliestDeadline, earliestDeadline <= now else { return [] }
        return removeAll { $0.deadline <= now }
    }
}
