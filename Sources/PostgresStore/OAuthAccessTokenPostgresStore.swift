import Glibc
import Heimdallr
import SharedStore

/// Keeps records in PostgreSQL, sealed with AES-256-GCM, for any number of processes on any number of machines.
///
/// A lease is a mark in the client's row, and a save replaces the revision that its lease read (`MarkedTokenStore`).
/// The connection has its own thread, so that it blocks no thread of Swift's pool. Safe on any thread.
public final class OAuthAccessTokenPostgresStore: OAuthAccessTokenStore {
    let settings: PostgresStoreSettings
    let fresh: FreshTarget
    let sealing: RowSealing
    let names: ChangeNames
    let session: PostgresSession
    let engine: PostgresEngine
    private let records: MarkedTokenStore

    /// Loads libpq, and connects to nothing yet.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured`
    public convenience init(_ settings: PostgresStoreSettings) throws(TokenStoreError) {
        try self.init(settings, clock: .system)
    }

    /// - Parameter wrap: wraps the engine in another one; for tests.
    package init(
        _ settings: PostgresStoreSettings, clock: HeimdallrClock,
        wrap: (any SharedRecordEngine) -> any SharedRecordEngine = { $0 }
    ) throws(TokenStoreError) {
        self.settings = settings
        let libpq = try Libpq.load()
        let anchors = settings.trustAnchorsFile
        fresh = try FreshTarget(settings.connection, settings.connectionSource) { text throws(TokenStoreError) in
            try ConnectionTarget(text, anchors: anchors, libpq)
        }
        guard (1...80).contains(settings.space.utf8.count), !settings.space.utf8.contains(0) else {
            throw TokenStoreError("store.space: write a name of 1 to 80 characters", kind: .misconfigured)
        }
        sealing = RowSealing(space: settings.space, keys: settings.keys.map(\.sealing))
        names = ChangeNames(space: settings.space)
        session = try PostgresSession(
            fresh, libpq, space: settings.space, names: names, youth: settings.youth)
        engine = PostgresEngine(settings, sealing, names, clock, session)
        records = MarkedTokenStore(
            wrap(engine), leaseTime: settings.leaseTime,
            patience: settings.patience, process: Self.processName, clock: clock)
    }

    /// Name of this process in its marks, for operators: host name and process ID.
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

    /// Returns the fault of a connection string, found without connecting; `nil` for none, and if libpq is missing.
    public static func fault(in connection: Secret, trustAnchorsFile: String?) -> String? {
        guard let libpq = try? Libpq.load() else { return nil }
        do throws(TokenStoreError) {
            try ConnectionTarget(connection, anchors: trustAnchorsFile, libpq).checkFiles()
            return nil
        } catch {
            return error.description
        }
    }

    /// Begins to listen for changes, and checks the tables, the privileges, and that the records were not moved away.
    /// - Throws: `TokenStoreError`, of the kind `.unreachable` if waiting may help, otherwise `.misconfigured`.
    public func prepare() async throws {
        try await open()
        if let location = try await newLocation() { throw MovedStore.refusal(settings.location, movedTo: location) }
    }

    /// Does the same as `prepare()`, but accepts a store whose records were moved away.
    func open() async throws {
        try fresh.target.checkFiles()
        session.listen()
        try await connect()
        try await convertingFaults(isStart: true) {
            guard let found = try await run(Statements.schema).integer(0, 0) else {
                throw PostgresFault(kind: .refused("42P01"), text: "heimdallr.version is empty")
            }
            guard found == Statements.version else {
                throw PostgresFault(
                    kind: .found(found < Statements.version ? .olderTables : .newerTables),
                    text: "its tables have version \(found), and this program needs version \(Statements.version)")
            }
            guard try await run(Statements.privileges).flag(0, 0) else {
                throw PostgresFault(kind: .refused("42501"), text: "it may not read, add and change rows")
            }
        }
    }

    /// Waits for the connection, if the settings say so.
    func connect() async throws {
        guard settings.waitsForAllServers else { return }
        try await convertingFaults(isStart: true) {
            try await session.perform(within: fresh.target.longestAttempt + settings.answerTime) { _, _ in }
        }
    }

    /// Fault of the database and its remedy, as the last use found it; `nil` while records can be read and written.
    public var fault: TokenStoreError? { session.fault?.runtimeError }

    /// Ends the connection. Later calls fail.
    public func close() { session.stop() }

    // MARK: The store

    public func load(client: String) async throws -> TokenRecord? { try await records.load(client: client) }

    public func save(_ record: TokenRecord, client: String) async throws {
        try await records.save(record, client: client)
    }

    public func remove(client: String) async throws { try await records.remove(client: client) }

    public func lease(client: String) async throws -> (any TokenStoreLease)? { try await records.lease(client: client) }

    public func names(of client: String) async throws -> [String] {
        try await convertingFaults {
            let rows = try await run(Statements.names, [.text(settings.space), .text(client)])
            return (0..<rows.count).compactMap { rows.text($0, 0) }.filter { RecordName.client(of: $0) == client }
        }
    }

    public func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)? {
        try await records.lease(client: client, unlessLaterThan: revision)
    }

    public func changes(client: String) -> AsyncStream<Void>? { records.changes(client: client) }

    func run(_ statement: String, _ values: [PostgresLink.Value] = []) async throws -> PostgresRows {
        try await session.run(statement, values, within: settings.answerTime).rows
    }
}

/// Settings of a store in PostgreSQL.
public struct PostgresStoreSettings: Sendable {
    /// Connection string of libpq: keywords or a URI. The store ignores the environment, and files not named here.
    public var connection: Secret
    /// Source of the connection string, read again before each attempt to connect; `nil`: the string never changes.
    public var connectionSource: ConnectionSource?
    /// Name of this installation in the database.
    public var space: String
    /// Keys, at least one. The first seals records; each of them opens records.
    public var keys: [TokenStoreKey]
    /// File of trust anchors, used if the connection string names none; `nil` for the system's.
    public var trustAnchorsFile: String?
    /// Time after which an abandoned lease ends: twice the longest token request, and a margin.
    public var leaseTime = Duration.seconds(30)
    /// Longest wait for another process's lease of the same client.
    public var patience = Duration.seconds(30)
    /// Time for the database to answer one statement.
    public var answerTime = Duration.seconds(5)
    /// Time in which other processes announce that they take over a mark that has ended. Writes succeed during all of
    /// it, so the owner could save.
    package var takeoverTime = Duration.seconds(8)
    /// Time after the start or promotion of a server in which a new process lets others restore records first.
    package var youth = Duration.seconds(15)
    /// Whether the first use waits until each server of the connection string was tried. A proxy does not wait so long.
    public var waitsForAllServers = false
    /// Name of the store in messages.
    var location: String { "space \(space) in PostgreSQL" }

    /// Returns the current connection string. `wasRefused`: the server has just refused the last one, so a cached value
    /// does not help.
    public typealias ConnectionSource = @Sendable (_ wasRefused: Bool) async throws -> Secret

    /// - Parameter space: 1 to 80 bytes.
    public init(connection: Secret, space: String = "default", keys: [TokenStoreKey]) {
        self.connection = connection
        self.space = space
        self.keys = keys
    }
}
