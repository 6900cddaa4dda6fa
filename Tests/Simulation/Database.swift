import Heimdallr

/// A database that crashes, is slow and loses connections, for all processes of a run.
final class Database {
    struct Row {
        var revision: UInt64 = 0
        var record: TokenRecord?
        /// The connection whose transaction holds the row's lock.
        var lock: Connection?
    }

    /// One connection of one process.
    final class Connection {
        let process: Process
        var isOpen = true

        init(_ process: Process) { self.process = process }
    }

    struct Lost: Error {}

    unowned let world: World
    private var rows: [String: Row] = [:]
    private(set) var isUp = true
    private(set) var backAt: ContinuousClock.Instant?
    private var slowUntil: ContinuousClock.Instant?
    private var listeners: [(process: Process, client: String, stream: AsyncStream<Void>.Continuation)] = []

    init(_ world: World) { self.world = world }

    // MARK: Faults

    func crash(for duration: Duration) {
        guard isUp else { return }
        isUp = false
        for client in rows.keys.sorted() { drop(rows[client]?.lock) }
        Scheduler.shared.after(duration) { [self] in
            isUp = true
            backAt = world.now
            // Every listener connects anew, and looks.
            for listener in listeners { tell(listener) }
        }
    }

    func slow(for duration: Duration) { slowUntil = world.now + duration }

    /// Ends all connections of a process: their transactions are undone.
    func drop(_ process: Process) {
        for client in rows.keys.sorted() where rows[client]?.lock?.process === process { drop(rows[client]?.lock) }
    }

    private func drop(_ connection: Connection?) {
        guard let connection else { return }
        connection.isOpen = false
        for client in rows.keys where rows[client]?.lock === connection { rows[client]?.lock = nil }
    }

    // MARK: Statements

    /// One statement of `process`: it may be lost before it is carried out, or its answer after.
    func perform<Value>(
        on connection: Connection, _ work: (inout [String: Row]) throws -> Value
    ) async throws -> Value {
        let process = connection.process
        try await process.pass()
        let chance = { (count: Int) in Scheduler.shared.chance.within(0...count) }
        let isSlow = slowUntil.map { world.now < $0 } ?? false
        try await process.sleep(for: .milliseconds(1 + chance(isSlow ? 2000 : 8)))
        if process.isCut {
            // Nothing answers, and nothing says so.
            try await process.sleep(for: .seconds(5))
            throw Lost()
        }
        guard isUp, connection.isOpen, !process.isReset else { throw Lost() }
        if world.plan.breaks, Scheduler.shared.chance.once(in: 60), world.isFaulty {
            drop(connection)
            throw Lost()
        }
        let value = try work(&rows)
        if world.plan.breaks, Scheduler.shared.chance.once(in: 60), world.isFaulty {
            drop(connection)
            throw Lost()
        }
        try await process.sleep(for: .milliseconds(chance(4)))
        guard !process.isCut else {
            try await process.sleep(for: .seconds(5))
            throw Lost()
        }
        return value
    }

    /// Ends transactions that stand still, as `idle_in_transaction_session_timeout` does.
    func release(_ connection: Connection) { drop(connection) }

    func changed(_ client: String, by process: Process) {
        for listener in listeners where listener.client == client && listener.process !== process {
            Scheduler.shared.after(.milliseconds(Scheduler.shared.chance.within(1...20))) { [self] in tell(listener) }
        }
    }

    private func tell(_ listener: (process: Process, client: String, stream: AsyncStream<Void>.Continuation)) {
        // A process that is cut off hears it when it is back.
        if let end = listener.process.cutUntil, end > world.now {
            Scheduler.shared.at(end + .milliseconds(300)) { listener.stream.yield() }
        } else {
            listener.stream.yield()
        }
    }

    func changes(client: String, _ process: Process) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        listeners.append((process, client, continuation))
        return stream
    }

    /// What the judge looks at.
    func row(_ client: String) -> Row? { rows[client] }

    /// A record under a revision, durable.
    func wrote(_ record: TokenRecord?, _ client: String, over: UInt64, _ revision: UInt64) {
        guard revision > over else { return world.fail("\(client): revision \(revision) over \(over)") }
        guard let token = record?.refreshToken?.revealed else { return }
        for authority in world.authorities { authority.wasSaved(token) }
    }
}
