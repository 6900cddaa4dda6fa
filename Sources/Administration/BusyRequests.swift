import HTTPServer
import Synchronization

/// Counts the requests of one listener that are being answered and may take their time: they never have all its places,
/// so that there is always one for a probe. Any thread.
final class BusyRequests: Sendable {
    /// With all readers of `/events`, whose answers go on, three quarters of the places.
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
