import Heimdallr
import SharedStore
import Synchronization

/// The permanent connection: listens for changes of records, and reads.
///
/// A pooler may give each transaction another connection, and then notifications are lost. Behind one, this connection polls the
/// revisions of all watched clients, in one statement, about once a second.
final class PostgresListener: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var isPolling = false
        var pollAt: Instant?
    }

    private let state = Mutex(State())
    let changes = ChangeStreams()
    private let reach: SharedReachability
    private let space: String
    private let names: ChangeNames
    private let worker = Mutex<PostgresWorker?>(nil)

    /// Longest interval of polling without notifications.
    static let pollInterval = Duration.milliseconds(950)
    /// Interval with notifications, which checks the connection.
    static let heartbeat = Duration.seconds(15)

    init(space: String, names: ChangeNames, reach: SharedReachability) {
        self.space = space
        self.names = names
        self.reach = reach
    }

    /// Begins to listen, as soon as the database is reachable.
    /// - Throws: `TokenStoreError`
    func start(_ target: ConnectionTarget, _ libpq: Libpq.Table) throws {
        try worker.withLock { worker in
            guard worker == nil else { return }
            worker = try PostgresWorker(
                target, libpq, round: { [weak self] link in self?.round(link) ?? .seconds(3600) },
                broke: { [reach] in reach.broke() }, heard: { [weak self] texts in self?.heard(texts) })
        }
    }

    func stop() {
        worker.withLock { worker in
            worker?.stop()
            worker = nil
        }
        changes.finish()
    }

    deinit { stop() }

    /// Whether notifications are lost, so that it polls.
    var isPolling: Bool { state.withLock { $0.isPolling } }

    // MARK: Statements

    /// One statement, which commits by itself.
    /// - Throws: `PostgresFault`
    func run(
        _ statement: String, _ values: [PostgresLink.Value], within limit: Duration
    ) async throws -> PostgresWorker.Answer {
        guard let worker = worker.withLock({ $0 }) else { throw PostgresFault.lost("the token store is not prepared") }
        try reach.refuseWhenKnownAway()
        return try await worker.run(statement, values, within: limit) { [self] link, deadline in
            if !link.isOpen, try !begin(link, by: deadline) {
                throw reach.fault ?? PostgresFault.lost("another attempt to reach it is under way")
            }
        }
    }

    // MARK: The thread

    /// - Returns: the limit of the next wait.
    private func round(_ link: PostgresLink) -> Duration {
        if !link.isOpen {
            do {
                guard try begin(link, by: .now + .seconds(20)) else { return reach.pause }
            } catch {
                return reach.pause
            }
        }
        if state.withLock({ $0.pollAt.map { $0 <= .now } ?? true }) { look(link, changes.clients) }
        return state.withLock { state in
            guard let pollAt = state.pollAt else { return .zero }
            return max(.zero, Instant.now.duration(to: pollAt))
        }
    }

    /// - Returns: `false` if it is too early to try again.
    private func begin(_ link: PostgresLink, by deadline: Instant) throws -> Bool {
        guard reach.mayTry() else { return false }
        var isPooled = false
        do {
            try reach.opening { () throws(PostgresFault) in
                try link.open(by: deadline)
                // A pooler announces another process.
                let process = try link.run(Statements.process, by: deadline).integer(0, 0)
                isPooled = process != Int64(link.announcedProcess)
                if !isPooled {
                    try link.run(script: "LISTEN \(names.channel)", by: deadline)
                    // A pooler would give the lock to others.
                    _ = try link.run(Statements.use, [.text(space)], by: deadline)
                }
            }
        } catch {
            link.close()
            throw error
        }
        state.withLock { state in
            state.isPolling = isPooled
            state.pollAt = nil
        }
        // Notifications may have been lost.
        changes.tell()
        return true
    }

    private func look(_ link: PostgresLink, _ clients: Set<String>) {
        let isPolling = isPolling
        let interval = isPolling ? Self.pollInterval * Double.random(in: 0.85...1) : Self.heartbeat
        state.withLock { $0.pollAt = .now + interval }
        guard !isPolling || !clients.isEmpty else { return }
        let values: [PostgresLink.Value] = [.text(space), .text(PostgresArray.text(clients.sorted()))]
        guard let rows = try? link.run(Statements.revisions, values, by: .now + .seconds(5)) else {
            link.close()
            return
        }
        for row in 0..<rows.count {
            guard let client = rows.text(row, 0), let revision = rows.integer(row, 1) else { continue }
            changes.saw(UInt64(bitPattern: revision), isMarked: rows.flag(row, 2), of: client)
        }
    }

    private func heard(_ texts: [String]) {
        let marks = Set(texts.compactMap { names.mark(of: $0) })
        guard !marks.isEmpty else { return }
        changes.tell { marks.contains(names.mark(for: $0)) }
    }
}

enum PostgresArray {
    /// https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
    static func text(_ elements: [String]) -> String {
        let quoted = elements.map { element in
            "\"" + element.reduce(into: "") { $0 += $1 == "\"" || $1 == "\\" ? "\\\($1)" : String($1) } + "\""
        }
        return "{" + quoted.joined(separator: ",") + "}"
    }
}
