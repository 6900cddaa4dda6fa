import Cryptography
import Heimdallr
import SharedStore
import Synchronization

// Operations of an administrator.
extension OAuthAccessTokenPostgresStore {
    /// Creates missing tables and changes no record. Needs the privilege to create a schema if the schema is missing.
    /// Fails after a short wait for another session's lock, and names that session.
    /// - Parameter role: database role that will use the tables, if it is not the user of the connection string.
    /// - Throws: `TokenStoreError`
    public func makeSchema(role: String? = nil) async throws {
        try fresh.target.checkFiles()
        try await connect()
        let sql = PostgresSchema.sql(role: role)
        let limit = settings.answerTime * 4
        try await convertingFaults(isStart: true) {
            do {
                try await session.perform(within: limit) { link, deadline in try link.run(script: sql, by: deadline) }
            } catch let fault as PostgresFault {
                // These conditions have another remedy here than in a running proxy.
                let found: [String: PostgresFault.Finding] = ["42501": .mayNotMake, "55P03": .lockedTables]
                guard case .refused(let state) = fault.kind, let finding = found[state] else { throw fault }
                throw PostgresFault(kind: .found(finding), text: fault.text)
            }
        }
    }

    /// One row, without its content.
    public struct RowReport: Sendable {
        public var client: String
        /// 0 if there never was a record.
        public var revision: Int64
        /// Whether there is no record now.
        public var isEmpty: Bool
        /// Time since the row was written, by the database's clock.
        public var age: Duration
        /// Number of the configured key that sealed the row, from 1; `nil` for an unknown key.
        public var key: Int?
    }

    public struct LeaseReport: Sendable {
        public var client: String
        /// Host and process of the owner, as written by the owner.
        public var owner: String
        /// Time until the lease ends; negative after the end of a lease that its owner did not release.
        public var left: Duration
    }

    /// Report about the database and this space.
    public struct Report: Sendable {
        public var server: String
        public var schema: Int64
        /// Whether the proxy polls, because a pooler drops notifications.
        public var isPooled: Bool
        public var rows: [RowReport]
        public var leases: [LeaseReport]
        public var pendingLogins: Int64
        /// New location of moved records, as written by another process.
        public var newLocation: String?
    }

    /// Reads the tables.
    /// - Throws: `TokenStoreError`
    public func report() async throws -> Report {
        try await open()
        let newLocation = try await newLocation()
        return try await convertingFaults(isStart: true) {
            let space = PostgresLink.Value.text(settings.space)
            let about = try await run(
                "SELECT current_setting('server_version'), (SELECT max(version)::bigint FROM heimdallr.version),"
                    + " (SELECT count(*) FROM heimdallr.pending WHERE space = $1::text AND sealed IS NOT NULL"
                    + " AND expires_at > clock_timestamp())", [space])
            let rows = try await run(
                "SELECT client, revision, (extract(epoch FROM clock_timestamp() - saved_at) * 1000000)::bigint,"
                    + " substring(sealed FROM 10 FOR 8) FROM heimdallr.token WHERE space = $1::text AND client <> 'moved' ORDER BY client",
                [space])
            let leases = try await run(
                "SELECT client, split_part(holder, ' ', 1), CASE WHEN split_part(holder, ' ', 2) = 'contested' THEN 0 ELSE"
                    + " (extract(epoch FROM held_until - clock_timestamp()) * 1000000)::bigint END"
                    + " FROM heimdallr.token WHERE space = $1::text AND holder IS NOT NULL AND client <> 'moved' ORDER BY client",
                [space])
            return Report(
                server: about.text(0, 0) ?? "", schema: about.integer(0, 1) ?? 0, isPooled: session.isPolling,
                rows: (0..<rows.count).map { row in
                    RowReport(
                        client: rows.text(row, 0) ?? "", revision: rows.integer(row, 1) ?? 0,
                        isEmpty: rows.bytes(row, 3) == nil, age: .microseconds(max(0, rows.integer(row, 2) ?? 0)),
                        key: sealing.keys.firstIndex { $0.identifier == rows.bytes(row, 3) }.map { $0 + 1 })
                },
                leases: (0..<leases.count).map { row in
                    LeaseReport(
                        client: leases.text(row, 0) ?? "", owner: leases.text(row, 1) ?? "",
                        left: .microseconds(leases.integer(row, 2) ?? 0))
                },
                pendingLogins: about.integer(0, 2) ?? 0, newLocation: newLocation)
        }
    }
}

extension OAuthAccessTokenPostgresStore: MovableTokenStore {
    package var location: String { settings.location }

    /// Throws if `alone` is true and a proxy is connected. Behind a transaction pooler, no proxy is detected. After
    /// `setNewLocation`, running proxies get no more leases.
    package func prepareMove(alone: Bool) async throws {
        try await open()
        engine.isMoving.store(true, ordering: .relaxed)
        guard alone, !session.isPolling else { return }
        guard try await convertingFaults({ try await run(Statements.useAlone, [.text(settings.space)]).flag(0, 0) })
        else { throw MovedStore.inUse(location) }
    }

    package func newLocation() async throws -> String? {
        try await convertingFaults { try await run(Statements.newLocation, [.text(settings.space)]).text(0, 0) }
    }

    package func setNewLocation(_ location: String?) async throws {
        let values: [PostgresLink.Value] = [.text(settings.space), location.map { .text($0) } ?? .null]
        try await convertingFaults { _ = try await run(Statements.setNewLocation, values) }
    }
}

extension OAuthAccessTokenPostgresStore: PendingLoginStore {
    /// Limit of pending logins in one database.
    private static let maxPending: Int64 = 4096

    public func putPending(_ content: Secret, key: String, life: Duration) async throws {
        let name = names.pending(key)
        let sealed = try sealing.seal(content, for: "pending", name)
        try await convertingFaults {
            let values: [PostgresLink.Value] = [
                .text(settings.space), .bytes(name), .bytes(sealed), .integer(max(0, life.microseconds)),
            ]
            if try await run(Statements.putAgain, values).tag == "UPDATE 1" { return }
            guard try await run(Statements.putAnew, values + [.integer(Self.maxPending)]).tag == "INSERT 0 1" else {
                throw TokenStoreError("\(Self.maxPending) logins are under way: try again in a few minutes")
            }
        }
    }

    public func takePending(key: String) async throws -> Secret? {
        let name = names.pending(key)
        return try await convertingFaults {
            let rows = try await run(Statements.takePending, [.text(settings.space), .bytes(name)])
            guard let sealed = rows.bytes(0, 0) else { return nil }
            return try sealing.open(sealed, for: "pending", name)
        }
    }
}
