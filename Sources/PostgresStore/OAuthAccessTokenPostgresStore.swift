import Cryptography
import Glibc
import Heimdallr

/// Keeps records in PostgreSQL, sealed with AES-256-GCM, for any number of processes on any number of machines.
///
/// A lease is a mark in the client's row, and a save replaces the revision that its lease saw (`MarkedTokenStore`). Nothing
/// waits on Swift's threads: each of the two connections has its thread. Safe on any thread.
public final class OAuthAccessTokenPostgresStore: OAuthAccessTokenStore {
    let settings: PostgresStoreSettings
    let target: ConnectionTarget
    let libpq: Libpq.Table
    let sealing: RowSealing
    let reach: SharedReachability
    let listener: PostgresListener
    private let writer: PostgresWriter
    let engine: PostgresEngine
    private let records: MarkedTokenStore

    /// Reaches for nothing yet, but loads libpq.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured`
    public convenience init(_ settings: PostgresStoreSettings) throws(TokenStoreError) {
        try self.init(settings, clock: .system)
    }

    /// - Parameter wrap: puts another engine around this one; for tests.
    package init(
        _ settings: PostgresStoreSettings, clock: HeimdallrClock,
        wrap: (any SharedRecordEngine) -> any SharedRecordEngine = { $0 }
    ) throws(TokenStoreError) {
        self.settings = settings
        let libpq = try Libpq.load()
        let target = try ConnectionTarget(settings.connection, anchors: settings.trustAnchorsFile, libpq)
        self.libpq = libpq
        self.target = target
        guard (1...80).contains(settings.space.utf8.count), !settings.space.utf8.contains(0) else {
            throw TokenStoreError("store.space: write a name of 1 to 80 characters", kind: .misconfigured)
        }
        sealing = RowSealing(space: settings.space, keys: settings.keys.map(\.sealing))
        let names = ChangeNames(space: settings.space)
        reach = SharedReachability()
        listener = PostgresListener(space: settings.space, names: names, reach: reach)
        writer = try PostgresWriter(target, libpq, reach)
        engine = PostgresEngine(settings, sealing, names, clock, reach, listener, writer)
        records = MarkedTokenStore(
            wrap(engine), leaseTime: settings.leaseTime,
            patience: settings.patience, holder: Self.processName, clock: clock)
    }

    /// This process, for whoever looks for the holder of a mark.
    private static var processName: String {
        var name = [CChar](repeating: 0, count: 64)
        let count = name.count - 1
        let code = unsafe name.withUnsafeMutableBufferPointer {
            unsafe $0.baseAddress.map { unsafe gethostname($0, count) }
        }
        let host =
            code == 0 ? String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
        return "\(host):\(getpid())"
    }

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
        try await open()
        if let place = try await newPlace() { throw MovedStore.refusal(settings.place, movedTo: place) }
    }

    /// The same, also where the records were moved away.
    func open() async throws {
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
        writer.stop()
    }

    // MARK: The store

    public func load(client: String) async throws -> TokenRecord? {
        try check(client)
        return try await records.load(client: client)
    }

    public func save(_ record: TokenRecord, client: String) async throws {
        try check(client)
        try await records.save(record, client: client)
    }

    public func remove(client: String) async throws {
        try check(client)
        try await records.remove(client: client)
    }

    public func lease(client: String) async throws -> (any TokenStoreLease)? {
        try check(client)
        return try await records.lease(client: client)
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

    public func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)? {
        try check(client)
        return try await records.lease(client: client, unlessLaterThan: revision)
    }

    public func changes(client: String) -> AsyncStream<Void>? { records.changes(client: client) }

    // MARK: Small things

    private func check(_ client: String) throws(TokenStoreError) {
        guard (1...240).contains(client.utf8.count), !client.utf8.contains(0) else {
            throw TokenStoreError("the token store needs client names of 1 to 240 bytes", kind: .misconfigured)
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
    /// Time after which an abandoned lease ends: twice the longest token request, and a margin.
    public var leaseTime = Duration.seconds(30)
    /// How long to wait for another process that works with the same client's record.
    public var patience = Duration.seconds(30)
    /// How long the database may take to answer one statement.
    public var answerTime = Duration.seconds(5)
    /// The store's name for people.
    var place: String { "space \(space) in PostgreSQL" }

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
