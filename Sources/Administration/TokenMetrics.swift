public import Heimdallr
import Reports
import Synchronization

/// Counts results of token requests, and events of tokens. Labels are configured clients and fixed words. Any thread.
public final class TokenMetrics: Sendable {
    struct Client: Sendable {
        /// Results by grant type: first the client's own grant, then refreshes.
        var requests: [(grantType: String, results: [TokenRequestReport.Result: UInt64])]
        /// Few buckets, because each client has all of them in `/metrics`.
        var durations = Histogram(bounds: [0.05, 0.25, 1, 2.5, 5, 10])
        var events: [String: UInt64] = [:]
    }

    static let eventNames = [
        "needs_authentication", "token_acquired", "token_refreshed", "token_lost", "token_failed",
    ]
    private static let refresh = "refresh_token"

    private let clients: Mutex<[String: Client]>

    /// - Parameter clients: names and grant types of all clients.
    public init(clients: [(name: String, grantType: String)]) { self.clients = Mutex(Self.table(clients, [:])) }

    /// Sets the clients of another configuration. Clients in both configurations keep their counts.
    public func change(to others: [(name: String, grantType: String)]) {
        clients.withLock { $0 = Self.table(others, $0) }
    }

    private static func table(
        _ clients: [(name: String, grantType: String)], _ former: [String: Client]
    ) -> [String: Client] {
        var table: [String: Client] = [:]
        for client in clients {
            let grants = client.grantType == refresh ? [refresh] : [client.grantType, refresh]
            var counted = former[client.name] ?? Client(requests: [])
            counted.requests = grants.map { grant in
                (grant, counted.requests.first { $0.grantType == grant }?.results ?? [:])
            }
            table[client.name] = counted
        }
        return table
    }

    public func record(_ report: TokenRequestReport) {
        clients.withLock { clients in
            guard var client = clients[report.client] else { return }
            if report.result != .notSent { client.durations.record(report.duration) }
            let index = client.requests.firstIndex { $0.grantType == report.grantType } ?? 0
            client.requests[index].results[report.result, default: 0] += 1
            clients[report.client] = client
        }
    }

    public func record(_ event: HeimdallrEvent) {
        clients.withLock { $0[event.client]?.events[event.name, default: 0] += 1 }
    }

    /// - Parameter refreshes: whether the client has a refresh token. Without one, refreshes are left out until the first.
    func snapshot(of client: String, refreshes: Bool = true) -> Client? {
        guard var counted = clients.withLock({ $0[client] }) else { return nil }
        if !refreshes, counted.requests.last?.results.isEmpty == true { counted.requests.removeSubrange(1...) }
        return counted
    }
}
