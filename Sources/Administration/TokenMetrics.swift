public import Heimdallr
import Reports
import Synchronization

/// Counts what becomes of the clients' token requests and tokens. Any thread; a token request is rare, so a lock is
/// cheap. Its labels are known from the start: clients of the configuration, and fixed words.
public final class TokenMetrics: Sendable {
    struct Client: Sendable {
        /// By grant type, the client's own first, then refreshes.
        var requests: [(grantType: String, results: [TokenRequestReport.Result: UInt64])]
        var durations = Histogram(bounds: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30])
        var events: [String: UInt64] = [:]
    }

    static let eventNames = [
        "needs_authentication", "token_acquired", "token_refreshed", "token_lost", "token_failed",
    ]
    private static let refresh = "refresh_token"

    private let clients: Mutex<[String: Client]>

    /// - Parameter clients: names and grant types.
    public init(clients: [(name: String, grantType: String)]) {
        var table: [String: Client] = [:]
        for client in clients {
            let grants = client.grantType == Self.refresh ? [Self.refresh] : [client.grantType, Self.refresh]
            table[client.name] = Client(requests: grants.map { ($0, [:]) })
        }
        self.clients = Mutex(table)
    }

    public func record(_ report: TokenRequestReport) {
        clients.withLock { clients in
            guard var client = clients[report.client] else { return }
            // What was not sent took no time at the server.
            if report.result != .notSent { client.durations.record(report.duration) }
            let index = client.requests.firstIndex { $0.grantType == report.grantType } ?? 0
            client.requests[index].results[report.result, default: 0] += 1
            clients[report.client] = client
        }
    }

    public func record(_ event: HeimdallrEvent) {
        clients.withLock { $0[event.client]?.events[event.name, default: 0] += 1 }
    }

    func snapshot(of client: String) -> Client? { clients.withLock { $0[client] } }
}
