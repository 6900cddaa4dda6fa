import Cryptography
import Heimdallr
import Synchronization

/// Keeps records in PostgreSQL, sealed with AES-256-GCM, for any number of processes on any number of machines.
///
/// A lease is an open transaction that holds the lock on the client's row. The server ends it when its holder hangs or is
/// cut off (`leaseTime`), and refuses what that one writes later. What may or may not have been written when the
/// connection broke is looked up; a record that is late goes in only over the one that its holder knew. Nothing waits on
/// Swift's threads: each connection has one of its own. Safe on any thread.
public final class OAuthAccessTokenPostgresStore: OAuthAccessTokenStore {
    typealias Instant = ContinuousClock.Instant

    let settings: PostgresStoreSettings
    let target: ConnectionTarget
    let libpq: Libpq.Table
    let sealing: RowSealing
    let names: ChangeNames
    let clock: HeimdallrClock
    let reach: SharedReachability
    let pool: PostgresPool
    let listener: PostgresListener
    private let clients = Mutex<[String: ClientState]>([:])

    private struct ClientState {
        weak var lease: PostgresLease?
        /// What was there when this process last had the row's lock.
        var base: UInt64?
    }

    /// Reaches for nothing yet, but loads libpq.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured`
    public convenience init(_ settings: PostgresStoreSettings) throws(TokenStoreError) {
        try self.init(settings, clock: .system)
    }

    init(_ settings: PostgresStoreSettings, clock: HeimdallrClock) throws(TokenStoreError) {
        self.settings = settings
        self.clock = clock
        let libpq = try Libpq.load()
        let target = try ConnectionTarget(settings.connection, anchors: settings.trustAnchorsFile, libpq)
        self.libpq = libpq
        self.target = target
        guard (1...80).contains(settings.space.utf8.count), !settings.space.utf8.contains(0) else {
            throw TokenStoreError("store.space: write a name of 1 to 80 characters", kind: .misconfigured)
        }
        sealing = RowSealing(space: settings.space, keys: settings.keys.map(\.sealing))
        names = ChangeNames(space: settings.space)
        let reach = SharedReachability(grace: settings.grace)
        self.reach = reach
        pool = PostgresPool(limit: settings.maxLeases, idleTime: .seconds(10)) { ended in
            try PostgresWorker(target, libpq, broke: { reach.broke() }, ended: ended)
        }
        listener = PostgresListener(space: settings.space, names: names, reach: reach)
    }

    deinit { close() }

    /// What is wrong with a connection string, as far as that can be seen without reaching for the database; `nil`: nothing,
    /// or there is no libpq to ask.
    public static func fault(in connection: Secret, trustAnchorsFile: String?) -> String? {
        guard let libpq = try? Libpq.load() else { return nil }
        do throws(TokenStoreError) {
            try ConnectionTarget(connection, anchors: trustAnchorsFile, libpq).checkFiles()
            return nil
        } catch {
            return error.description
        }
    }

    /// Begins to listen, and looks whether the tables are there and may be used.
    /// - Throws: `TokenStoreError`; its kind is `.misconfigured` where waiting does not help, `.unreachable` where it may.
    public func prepare() async throws {
        try target.checkFiles()
        try listener.start(target, libpq)
        try await judging(isStart: true) {
            let answer = try await listener.run(Statements.schema, { [] }, within: settings.answerTime)
            guard let found = answer.rows.integer(0, 0) else {
                throw PostgresFault(kind: .refused("42P01"), text: "heimdallr.version is empty")
            }
            guard found == Statements.version else {
                throw TokenStoreError(
                    "the tables of the token store are of version \(found), and this is a program for version "
                        + "\(Statements.version): run `heimdallr-proxy store init` of the later one, then the later one",
                    kind: .misconfigured)
            }
            try await checkPrivileges()
        }
    }

    /// Ends all connections. What is asked of it later fails.
    public func close() {
        listener.stop()
        pool.close()
    }

    // MARK: The store

    public func load(client: String) async throws -> TokenRecord? {
        try check(client)
        if let row = lease(of: client)?.firstReading() { return try record(row, client) }
        return try await judging {
            let space = settings.space
            let answer = try await listener.run(
                Statements.read, { [.text(space), .text(client)] }, within: settings.answerTime)
            guard let server = answer.rows.integer(0, 0), let revision = answer.rows.integer(0, 1), revision >= 0 else {
                return nil
            }
            let row = TokenRow(
                revision: UInt64(revision), sealed: answer.rows.bytes(0, 2), since: answer.rows.integer(0, 3) ?? .min,
                reading: ServerReading(server: server, asked: answer.asked, heard: answer.heard))
            return try record(row, client)
        }
    }

    public func save(_ record: TokenRecord, client: String) async throws { try await put(record, client) }

    public func remove(client: String) async throws { try await put(nil, client) }

    public func lease(client: String) async throws -> (any TokenStoreLease)? {
        try check(client)
        let lease = try await judging {
            try await hold(client, until: .now + settings.patience, isLate: false) {
                throw TokenStoreError(
                    "another process holds the lease of \(client) in the token store for more than "
                        + "\(settings.patience): `heimdallr-proxy store status` shows which", kind: .busy)
            }
        }
        clients.withLock { clients in
            clients[client, default: ClientState()].lease = lease
            clients[client]?.base = lease.revision
        }
        return lease
    }

    public func names(of client: String) async throws -> [String] {
        try await judging {
            let space = settings.space
            let rows = try await listener.run(
                Statements.names, { [.text(space), .text(client)] }, within: settings.answerTime
            ).rows
            return (0..<rows.count).compactMap { rows.text($0, 0) }.filter { RecordName.client(of: $0) == client }
        }
    }

    public func changes(client: String) -> AsyncStream<Void>? { listener.changes(client: client) }

    // MARK: Holding

    /// Takes the row's lock; while another has it, again and again.
    /// - Parameters:
    ///   - isLate: for a record that should have been there before. Others wait for those, once the server is up.
    ///   - former: what may still hold the lock for us, and is not wanted any more.
    ///   - lastly: what to do when the time is over.
    private func hold(
        _ client: String, until deadline: Instant, isLate: Bool, former: PostgresHolder? = nil,
        lastly: () throws -> Void
    ) async throws -> PostgresLease {
        let transaction = transaction(client)
        var pause = Duration.milliseconds(20)
        /// For those who have something to save since before the database was away.
        var hasWaited = false
        while true {
            try reach.refuseWhenKnownAway()
            let worker = try await pool.take(until: deadline)
            let limit = settings.answerTime
            // In line for the lock, but not for longer than there is time.
            let lockTime = isLate ? max(.milliseconds(50), min(.seconds(10), Instant.now.duration(to: deadline))) : nil
            do {
                let taken = try await worker.perform(within: limit * 2 + (lockTime ?? .zero)) { [reach] link in
                    try reach.open(link, by: .now + limit)
                    if let former { try transaction.end(former, link) }
                    return try transaction.take(link, waiting: lockTime)
                }
                if case .row(let row, let start, let holder) = taken {
                    let lease = PostgresLease(worker, row, holder, pool, answerTime: settings.answerTime)
                    guard !Task.isCancelled else {
                        await lease.release()
                        throw CancellationError()
                    }
                    let grace = reach.sees(start)
                    // Of what never was, nobody has spent anything.
                    if !isLate, !hasWaited, grace > .zero, row.revision > 0 {
                        hasWaited = true
                        await lease.release()
                        try await Task.sleep(for: grace)
                        continue
                    }
                    return lease
                }
                pool.giveBack(worker)
            } catch {
                // What the lease has given back stays.
                if !(error is CancellationError) { pool.discard(worker) }
                throw error
            }
            if Instant.now >= deadline { try lastly() }
            // Two that wait for each other's end must not step in time.
            try await Task.sleep(for: pause * Double.random(in: 0.5...1))
            pause = min(pause * 2, .milliseconds(250))
        }
    }

    /// One whose end was begun, and that has written nothing.
    private func lease(again held: PostgresLease.Held) -> PostgresLease {
        PostgresLease(held.worker, held.row, held.holder, pool, answerTime: settings.answerTime)
    }

    private func transaction(_ client: String) -> PostgresTransaction {
        PostgresTransaction(
            space: settings.space, client: client, sealing: sealing, names: names, clock: clock,
            leaseTime: settings.leaseTime, answerTime: settings.answerTime)
    }

    // MARK: Writing

    /// - Parameter record: `nil`: nothing shall be there.
    private func put(_ record: TokenRecord?, _ client: String) async throws {
        try check(client)
        try await judging {
            let lease = lease(of: client)
            let isUnderLease = lease != nil
            var former: PostgresHolder?
            if let lease, let held = lease.end() {
                do {
                    lease.wrote(try await write(record, client, held))
                    return
                } catch let fault as PostgresFault where fault.kind == .lost || fault.isPassing {
                    // Perhaps the server has ended it, perhaps the answer to COMMIT is what was lost.
                    former = held.holder
                }
            }
            let base = clients.withLock { $0[client]?.base }
            let revision = try await compareAndSwap(record, client, base, isUnderLease: isUnderLease, former)
            lease?.wrote(revision)
        }
    }

    /// Writes under the lock that is held, and gives the connection back.
    private func write(
        _ record: TokenRecord?, _ client: String, _ held: PostgresLease.Held
    ) async throws -> UInt64 {
        let transaction = transaction(client)
        do {
            let revision = try await held.worker.perform(
                within: settings.answerTime * 2 + transaction.writeTime
            ) { link in
                try transaction.write(record, over: held.row, link)
            }
            pool.giveBack(held.worker)
            clients.withLock { $0[client, default: ClientState()].base = revision }
            listener.know(revision, of: client)
            return revision
        } catch {
            pool.discard(held.worker)
            throw error
        }
    }

    /// A record that is late: under a lock of its own, and only over what its holder knew.
    /// - Returns: the row's revision.
    private func compareAndSwap(
        _ record: TokenRecord?, _ client: String, _ base: UInt64?, isUnderLease: Bool,
        _ former: PostgresHolder?
    ) async throws -> UInt64 {
        // The transaction that was cut off may hold the row until the server ends it.
        // It can't be reached: what is saved later, once it is back, still comes before any lease.
        let lastTry = Instant.now + min(settings.patience, .seconds(5))
        let deadline = Instant.now + (isUnderLease ? max(settings.patience, settings.leaseTime) : settings.patience)
        while true {
            let lease: PostgresLease
            do {
                lease = try await hold(client, until: deadline, isLate: true, former: former) {
                    throw TokenStoreError(
                        "the row of \(client) in the token store is in use for more than \(settings.patience)",
                        kind: .busy)
                }
            } catch let fault as PostgresFault
                where (fault.kind == .lost || fault.isPassing) && isUnderLease && Instant.now < lastTry
            {
                // Nobody else may be the first when it is back: what this one has may be the only good refresh token.
                try await Task.sleep(for: .milliseconds(Int.random(in: 30...80)))
                continue
            }
            guard let held = lease.end() else { continue }
            let row = held.row
            if transaction(client).isWritten(record, row), row.revision > base ?? 0 || record == nil {
                await self.lease(again: held).release()
                return row.revision
            }
            // Who never had the lock knows of no other record than those before its own.
            let known = base ?? record.map { $0.revision - min($0.revision, 1) } ?? row.revision
            guard record == nil || row.revision <= known else {
                await self.lease(again: held).release()
                throw TokenStoreError(
                    "another process has stored a later record of \(client): this one was not saved", kind: .superseded)
            }
            do {
                return try await write(record, client, held)
            } catch let fault as PostgresFault where (fault.kind == .lost || fault.isPassing) && Instant.now < lastTry {
                try await Task.sleep(for: .milliseconds(Int.random(in: 30...80)))
            }
        }
    }

    // MARK: Small things

    private func lease(of client: String) -> PostgresLease? { clients.withLock { $0[client]?.lease } }

    private func record(_ row: TokenRow, _ client: String) throws(TokenStoreError) -> TokenRecord? {
        listener.know(row.revision, of: client)
        return try row.record(client: client, sealing, clock: clock)
    }

    private func check(_ client: String) throws(TokenStoreError) {
        guard (1...240).contains(client.utf8.count), !client.utf8.contains(0) else {
            throw TokenStoreError("the token store needs client names of 1 to 240 bytes", kind: .misconfigured)
        }
    }

    /// Says what went wrong in the words of stores.
    func judging<Value>(isStart: Bool = false, _ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let fault as PostgresFault {
            throw isStart ? fault.storeError : fault.lateError
        }
    }

    private func checkPrivileges() async throws {
        for statement in [
            "SELECT has_table_privilege('heimdallr.token', 'SELECT, INSERT, UPDATE')"
                + " AND has_table_privilege('heimdallr.token', 'INSERT') AND has_table_privilege('heimdallr.token', 'UPDATE')"
                + " AND has_table_privilege('heimdallr.pending', 'SELECT') AND"
                + " has_table_privilege('heimdallr.pending', 'INSERT') AND"
                + " has_table_privilege('heimdallr.pending', 'UPDATE')"
        ] {
            let answer = try await listener.run(statement, { [] }, within: settings.answerTime)
            guard answer.rows.flag(0, 0) else {
                throw PostgresFault(kind: .refused("42501"), text: "it may not read, add and change rows")
            }
        }
    }
}

/// What a store in PostgreSQL is told.
public struct PostgresStoreSettings: Sendable {
    /// A connection string of libpq's, as keywords or as a URI.
    public var connection: Secret
    /// One installation among several in one database.
    public var space: String
    /// The first seals, any opens. At least one.
    public var keys: [TokenStoreKey]
    /// Trust anchors, where the connection string names none; `nil`: the system's.
    public var trustAnchorsFile: String?
    /// How long the holder of a lease may say nothing before the server ends it: longer than a token request takes.
    public var leaseTime = Duration.seconds(30)
    /// How long to wait for another process that works with the same client's record.
    public var patience = Duration.seconds(30)
    /// How long the database may take to answer one statement.
    public var answerTime = Duration.seconds(5)
    /// How many leases one process has at once, each with a connection.
    public var maxLeases = 16
    /// Once the database is back, nobody takes a lease for so long, so that whoever was waiting for an answer of a token
    /// endpoint when it went can save that first.
    public var grace = Duration.milliseconds(2500)

    /// - Parameters:
    ///   - connection: libpq's connection string; nothing is taken from the environment, or from files that it has not
    ///     named.
    ///   - space: 1 to 80 bytes.
    ///   - keys: the one to seal with, then earlier ones.
    public init(connection: Secret, space: String = "default", keys: [TokenStoreKey]) {
        self.connection = connection
        self.space = space
        self.keys = keys
    }
}
