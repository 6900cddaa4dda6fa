import Heimdallr
import Synchronization

/// The connection that writes: opened on demand, closed when it is idle for a while. It runs statements in order.
final class PostgresWriter: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let worker: PostgresWorker
    private let reach: SharedReachability

    static let idleTime = Duration.seconds(10)

    /// - Throws: `TokenStoreError` without a free thread.
    init(
        _ target: ConnectionTarget, _ libpq: Libpq.Table, _ reach: SharedReachability
    ) throws(TokenStoreError) {
        self.reach = reach
        let lastUse = LastUse()
        self.lastUse = lastUse
        worker = try PostgresWorker(
            target, libpq,
            round: { link in
                guard link.isOpen else { return .seconds(3600) }
                let left = Instant.now.duration(to: lastUse.at + Self.idleTime)
                if left > .zero { return left }
                link.close()
                return .seconds(3600)
            }, broke: { reach.broke() })
    }

    private let lastUse: LastUse

    private final class LastUse: Sendable {
        private let instant = Mutex(Instant.now)
        var at: Instant { instant.withLock { $0 } }
        func now() { instant.withLock { $0 = .now } }
    }

    /// One statement, which commits by itself.
    /// - Throws: `PostgresFault`
    func run(
        _ statement: String, _ values: [PostgresLink.Value], within limit: Duration
    ) async throws -> PostgresWorker.Answer {
        try reach.refuseWhenKnownAway()
        return try await worker.run(statement, values, within: limit) { [reach, lastUse] link, deadline in
            try reach.open(link, by: deadline)
            lastUse.now()
        }
    }

    func stop() { worker.stop() }

    deinit { worker.stop() }
}
