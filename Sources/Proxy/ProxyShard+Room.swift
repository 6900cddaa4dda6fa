import Configuration
import Reactor

/// When more clients come than there are places: what connections that only wait for a request owe to those who wait
/// for a place.
struct Room {
    /// How often it is looked at while all places are taken.
    static let interval = Duration.milliseconds(100)
    /// A connection that had no request for so long may be ended for another one.
    static let shortIdle = Duration.seconds(1)
    private static let complaintInterval = Duration.seconds(10)

    private var count = 1
    private var nextComplaint = LoopTime(nanoseconds: 0)

    /// How many to end at this look: more from one to the next while the crowd stays.
    mutating func share(isAwaited: Bool) -> Int {
        guard isAwaited else {
            count = 1
            return 0
        }
        defer { count = min(count * 2, 1 << 16) }
        return count
    }

    /// Whether to say that nobody can be accepted: not each time.
    mutating func isWorthSaying(at now: LoopTime) -> Bool {
        guard now >= nextComplaint else { return false }
        nextComplaint = now + Self.complaintInterval
        return true
    }
}

extension ProxyServer {
    /// Descriptors for everything that is neither a client nor the upstream that serves it.
    private static let reserve = 64

    /// How many clients are served at once: `max_connections`, or what the limit of file descriptors allows, two for
    /// each. Past it clients wait; without a descriptor for the upstream they would fail.
    public static func places(_ settings: ProxySettings) -> Int {
        min(settings.maxConnections, max(1, (DescriptorLimit.current - reserve) / 2))
    }
}

extension ProxyShard {
    /// Ends the connections that have been idle longest, while others wait for their places.
    func makeRoom() {
        guard !isDraining else { return }
        let count = room.share(isAwaited: acceptors.contains(where: \.isAwaited))
        if count > 0 {
            let idle = connections.values.compactMap { connection in
                connection.idleSince.map { (connection: connection, since: $0) }
            }
            let longest = idle.filter { $0.since + Room.shortIdle <= loop.now }.sorted { $0.since < $1.since }
            for (connection, _) in longest.prefix(count) { connection.close() }
        }
        if connections.count >= places { roomTimer?.schedule(after: Room.interval) }
    }

    /// Mostly for want of a descriptor. The acceptor tries again by itself.
    func acceptFailed(_ error: SystemError) {
        if room.isWorthSaying(at: loop.now) { observer.acceptFailed(error) }
        makeRoom()
    }
}
