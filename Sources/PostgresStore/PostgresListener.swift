import Heimdallr
import Synchronization

/// The one connection that stays: hears when others have changed a record, and reads.
///
/// Behind a pooler nothing can be heard: it may give each transaction another connection. Then this connection looks at the
/// revisions of all watched clients, in one statement, about once a second.
final class PostgresListener: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var streams: [UInt64: (client: String, stream: AsyncStream<Void>.Continuation)] = [:]
        var lastNumber: UInt64 = 0
        /// As far as is known.
        var revisions: [String: UInt64] = [:]
        /// Clients whose rows had a mark when they were last looked at.
        var marked: Set<String> = []
        var isPolling = false
        var pollAt: Instant?
    }

    private let state = Mutex(State())
    private let reach: SharedReachability
    private let space: String
    private let names: ChangeNames
    private let worker = Mutex<PostgresWorker?>(nil)

    /// Longest time between two looks at the revisions, where nothing can be heard.
    static let pollInterval = Duration.milliseconds(950)
    /// The same where it can: shows that the connection still stands.
    static let heartbeat = Duration.seconds(15)

    init(space: String, names: ChangeNames, reach: SharedReachability) {
        self.space = space
        self.names = names
        self.reach = reach
    }

    /// Begins to listen, as soon as the database is there.
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
        let streams = state.withLock { state in
            defer { state.streams = [:] }
            return state.streams.values.map(\.stream)
        }
        for stream in streams { stream.finish() }
    }

    deinit { stop() }

    /// Whether nothing can be heard.
    var isPolling: Bool { state.withLock { $0.isPolling } }

    // MARK: For others

    /// One statement, which commits by itself.
    /// - Throws: `PostgresFault`
    func run(
        _ statement: String, _ values: @escaping @Sendable () -> [PostgresLink.Value], within limit: Duration
    ) async throws -> (rows: PostgresRows, asked: Instant, heard: Instant) {
        guard let worker = worker.withLock({ $0 }) else { throw PostgresFault.lost("the token store is not prepared") }
        try reach.refuseWhenKnownAway()
        return try await worker.perform(within: limit) { [self] link in
            let deadline = Instant.now + limit
            if !link.isOpen, try !begin(link, by: deadline) {
                throw reach.fault ?? PostgresFault.lost("somebody is trying to reach it")
            }
            let asked = Instant.now
            let rows = try link.run(statement, values(), by: deadline)
            return (rows, asked, .now)
        }
    }

    func changes(client: String) -> AsyncStream<Void> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { stream in
            let number = state.withLock { state in
                state.lastNumber += 1
                state.streams[state.lastNumber] = (client, stream)
                return state.lastNumber
            }
            stream.onTermination = { [weak self] _ in
                self?.state.withLock { state in _ = state.streams.removeValue(forKey: number) }
            }
        }
    }

    /// Somebody here knows this revision: it is no news.
    func know(_ revision: UInt64, of client: String) {
        state.withLock { $0.revisions[client] = max(revision, $0.revisions[client] ?? 0) }
    }

    // MARK: The thread

    /// - Returns: how long to wait at most.
    private func round(_ link: PostgresLink) -> Duration {
        if !link.isOpen {
            do {
                guard try begin(link, by: .now + .seconds(20)) else { return reach.pause }
            } catch {
                return reach.pause
            }
        }
        let (isDue, clients) = state.withLock { state in
            (state.pollAt.map { $0 <= .now } ?? true, Set(state.streams.values.map(\.client)))
        }
        if isDue { look(link, clients) }
        return state.withLock { state in
            guard let pollAt = state.pollAt else { return .zero }
            return max(.zero, Instant.now.duration(to: pollAt))
        }
    }

    /// - Returns: `false`: it is too early to try again.
    private func begin(_ link: PostgresLink, by deadline: Instant) throws -> Bool {
        guard reach.mayTry() else { return false }
        var isPooled = false
        do {
            try reach.opening { () throws(PostgresFault) in
                try link.open(by: deadline)
                // A pooler says a process of its own.
                let process = try link.run(Statements.process, by: deadline).integer(0, 0)
                isPooled = process != Int64(link.announcedProcess)
                if !isPooled {
                    try link.run(script: "LISTEN \(names.channel)", by: deadline)
                    // A pooler would keep the lock for others.
                    _ = try link.run(Statements.use, [.text(space)], by: deadline)
                }
            }
        } catch {
            link.close()
            throw error
        }
        let streams = state.withLock { state in
            state.isPolling = isPooled
            state.pollAt = nil
            return state.streams.values.map(\.stream)
        }
        // What was said meanwhile nobody has heard.
        for stream in streams { stream.yield() }
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
            let isMarked = rows.flag(row, 2)
            let isNew = state.withLock { state in
                let isFreed = state.marked.contains(client) && !isMarked
                if isMarked { state.marked.insert(client) } else { state.marked.remove(client) }
                let before = state.revisions.updateValue(UInt64(bitPattern: revision), forKey: client)
                return isFreed || before != UInt64(bitPattern: revision)
            }
            if isNew { tell { $0 == client } }
        }
    }

    private func heard(_ texts: [String]) {
        let marks = Set(texts.compactMap { names.mark(of: $0) })
        guard !marks.isEmpty else { return }
        tell { marks.contains(names.mark(for: $0)) }
    }

    private func tell(_ isMeant: (String) -> Bool) {
        for entry in state.withLock({ Array($0.streams.values) }) where isMeant(entry.client) { entry.stream.yield() }
    }
}

/// What notifications are called. They say which client's record has changed by a digest, for anybody who may log in to
/// the database may listen.
struct ChangeNames: Sendable {
    /// Of this space.
    let channel: String
    private let space: String
    /// Of this process, which need not hear of itself.
    private let origin: String

    init(space: String) {
        self.space = space
        channel = "heimdallr_" + Hex.digest(["space", space])
        origin = String(UInt64.random(in: .min ... .max), radix: 16)
    }

    func mark(for client: String) -> String { Hex.digest(["client", space, client]) }

    func text(for client: String) -> String { "\(mark(for: client)) \(origin)" }

    /// `nil`: it is our own.
    func mark(of text: String) -> String? {
        let words = text.split(separator: " ")
        guard let mark = words.first, words.count < 2 || words[1] != origin else { return nil }
        return String(mark)
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
