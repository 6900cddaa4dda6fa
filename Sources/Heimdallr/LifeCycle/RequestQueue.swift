/// Decides which request to an authorization server gets the next slot. Does no I/O; the time is passed in.
///
/// The next slot goes to the endpoint with the fewest requests under way. Among equal endpoints, the client with the
/// fewest requests under way comes first, and among equal clients the oldest request. The last slots are kept for
/// endpoints and clients without a request under way, so that the backlog of one does not delay the others.
struct RequestQueue: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias ID = UInt64

    /// The client and the endpoint of a request. Each has a limited share of the slots.
    struct Requester: Sendable, Hashable {
        var client: ID = 0
        var endpoint = ""
    }

    private let limits: TokenRequestLimits
    private var nextID: ID = 1
    /// Waiting requests of each requester, oldest first. No list is empty.
    private var lines: [Requester: [ID]] = [:]
    private var waiting: [ID: (requester: Requester, deadline: Instant?)] = [:]
    private var underWay: [ID: (requester: Requester, since: Instant)] = [:]
    private var atEndpoint: [String: Int] = [:]
    private var ofClient: [ID: Int] = [:]

    init(_ limits: TokenRequestLimits) { self.limits = limits }

    var waitingCount: Int { waiting.count }
    var underWayCount: Int { underWay.count }

    /// Returns a new identifier, for a request or a client.
    mutating func makeID() -> ID {
        defer { nextID += 1 }
        return nextID
    }

    /// - Parameter deadline: end of the wait; `nil`: none.
    mutating func enter(_ id: ID, _ requester: Requester, until deadline: Instant? = nil) {
        lines[requester, default: []].append(id)
        waiting[id] = (requester, deadline)
    }

    /// Removes a waiting request. Returns whether the request was waiting.
    mutating func leave(_ id: ID) -> Bool {
        guard let requester = waiting.removeValue(forKey: id)?.requester else { return false }
        lines[requester]?.removeAll { $0 == id }
        if lines[requester]?.isEmpty == true { lines[requester] = nil }
        // An empty dictionary keeps its memory, and each client has a queue.
        if waiting.isEmpty { (waiting, lines) = ([:], [:]) }
        return true
    }

    mutating func finish(_ id: ID) {
        guard let requester = underWay.removeValue(forKey: id)?.requester else { return }
        Self.decrement(&atEndpoint, requester.endpoint)
        Self.decrement(&ofClient, requester.client)
        if underWay.isEmpty { (underWay, atEndpoint, ofClient) = ([:], [:], [:]) }
    }

    private static func decrement<Key>(_ counts: inout [Key: Int], _ key: Key) {
        let count = counts[key, default: 0] - 1
        counts[key] = count > 0 ? count : nil
    }

    /// Removes and returns the waiting requests whose deadline has passed.
    mutating func expire(now: Instant) -> [ID] {
        let late = waiting.filter { $0.value.deadline.map { $0 <= now } ?? false }.map(\.key)
        for id in late { _ = leave(id) }
        return late
    }

    /// Gives slots to as many waiting requests as the limits allow. Returns these requests.
    mutating func admit(now: Instant) -> [ID] {
        var admitted: [ID] = []
        guard !lines.isEmpty else { return admitted }
        var fresh = underWay.values.count { !isSlow($0.since, now) }
        while underWay.count < limits.all, fresh < limits.fresh, let requester = next, let id = lines[requester]?.first
        {
            _ = leave(id)
            underWay[id] = (requester, now)
            atEndpoint[requester.endpoint, default: 0] += 1
            ofClient[requester.client, default: 0] += 1
            fresh += 1
            admitted.append(id)
        }
        return admitted
    }

    private func isSlow(_ since: Instant, _ now: Instant) -> Bool { since + limits.slowAfter <= now }

    /// The requester whose oldest request gets the next slot; `nil`: all waiting requesters have used their shares.
    private var next: Requester? {
        var best: (requester: Requester, rank: (Int, Int, ID))?
        for (requester, line) in lines {
            let rank = (atEndpoint[requester.endpoint] ?? 0, ofClient[requester.client] ?? 0, line.first ?? 0)
            let endpointLimit = limits.endpoint - (rank.1 > 0 ? limits.endpointSpare : 0)
            let totalLimit = limits.all - (rank.0 > 0 ? limits.allSpare : 0)
            guard rank.0 < endpointLimit, rank.1 < limits.client, underWay.count < totalLimit else { continue }
            if best.map({ rank < $0.rank }) ?? true { best = (requester, rank) }
        }
        return best?.requester
    }

    /// Returns the next time at which `expire` or `admit` has work, even if no request ends or enters before.
    func wake(now: Instant) -> Instant? {
        guard !waiting.isEmpty else { return nil }
        let deadline = waiting.values.compactMap(\.deadline).min()
        guard underWay.count < limits.all else { return deadline }
        let turnsSlow = underWay.values.filter { !isSlow($0.since, now) }.map { $0.since + limits.slowAfter }.min()
        return [deadline, turnsSlow].compactMap(\.self).min()
    }
}
