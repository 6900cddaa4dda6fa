import HTTPServer
import Synchronization

/// Limits concurrent slow requests of one listener, so that a connection remains for probes. Any thread.
final class BusyRequests: Sendable {
    /// Together with all readers of `/events`, three quarters of the connections.
    static let capacity = ServerSettings.administration.maxConnections * 3 / 4 - EventFeed.maxReaders

    private let count = Mutex(0)

    func answer(_ respond: () async -> ServerResponse) async -> ServerResponse {
        let isAdmitted = count.withLock { count in
            guard count < Self.capacity else { return false }
            count += 1
            return true
        }
        guard isAdmitted else {
            return .problem(.busy, "Too many requests are under way. Try again in a moment.\n")
        }
        defer { count.withLock { $0 -= 1 } }
        return await respond()
    }
}
