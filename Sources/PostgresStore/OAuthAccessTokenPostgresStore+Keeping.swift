import Cryptography
import Heimdallr
import Synchronization

// What an operator does with the store.
extension OAuthAccessTokenPostgresStore {
    /// Makes the tables where they are missing; nothing that is there is changed. Needs the right to make a schema.
    /// - Parameter role: who is to use them, if that is not the user of the connection string.
    /// - Throws: `TokenStoreError`
    public func makeSchema(role: String? = nil) async throws {
        try target.checkFiles()
        let sql = PostgresSchema.sql(role: role)
        let limit = settings.answerTime * 4
        try await judging(isStart: true) {
            let worker = try PostgresWorker(target, libpq)
            defer { worker.stop() }
            try await worker.perform(within: limit) { [reach] link in
                try reach.open(link, by: .now + limit)
                try link.run(script: sql, by: .now + limit)
            }
        }
    }

    /// One row, without what is in it.
    public struct RowReport: Sendable {
        public var client: String
        /// 0: there never was a record.
        public var revision: Int64
        /// Whether there is no record, or none any more.
        public var isEmpty: Bool
        /// How long ago it was written, by the database's clock.
        public var age: Duration
        /// Which of the configured keys it was sealed with, from 1; `nil`: none of them.
        public var key: Int?
    }

    /// A lease that somebody has.
    public struct HolderReport: Sendable {
        public var client: String
        /// The holder's host and process, as it has written them.
        public var holder: String
        /// Less than zero: its holder did not give it back.
        public var left: Duration
    }

    /// What the database says of itself and of this space.
    public struct Report: Sendable {
        public var server: String
        public var schema: Int64
        /// Whether a pooler is in between, so that changes are looked for and not heard.
        public var isPooled: Bool
        public var rows: [RowReport]
        public var holders: [HolderReport]
        public var pendingLogins: Int64
        /// Where the records went; `nil`: nowhere. Written by somebody else.
        public var newPlace: String?
    }

    /// Looks at the tables.
    /// - Throws: `TokenStoreError`
    public func report() async throws -> Report {
        try await open()
        let newPlace = try await newPlace()
        return try await judging(isStart: true) {
            let (space, limit) = (settings.space, settings.answerTime)
            let about = try await listener.run(
                "SELECT current_setting('server_version'), (SELECT max(version)::bigint FROM heimdallr.version),"
                    + " (SELECT count(*) FROM heimdallr.pending WHERE space = $1::text AND sealed IS NOT NULL"
                    + " AND expires_at > clock_timestamp())",
                { [.text(space)] }, within: limit
            ).rows
            let rows = try await listener.run(
                "SELECT client, revision, (extract(epoch FROM clock_timestamp() - saved_at) * 1000000)::bigint,"
                    + " substring(sealed FROM 10 FOR 8) FROM heimdallr.token WHERE space = $1::text AND client <> 'moved' ORDER BY client",
                { [.text(space)] }, within: limit
            ).rows
            let holders = try await listener.run(
                "SELECT client, holder, (extract(epoch FROM held_until - clock_timestamp()) * 1000000)::bigint"
                    + " FROM heimdallr.token WHERE space = $1::text AND holder IS NOT NULL AND client <> 'moved' ORDER BY client",
                { [.text(space)] }, within: limit
            ).rows
            return Report(
                server: about.text(0, 0) ?? "", schema: about.integer(0, 1) ?? 0, isPooled: listener.isPolling,
                rows: (0..<rows.count).map { row in
                    RowReport(
                        client: rows.text(row, 0) ?? "", revision: rows.integer(row, 1) ?? 0,
                        isEmpty: rows.bytes(row, 3) == nil, age: .microseconds(max(0, rows.integer(row, 2) ?? 0)),
                        key: sealing.keys.firstIndex { $0.identifier == rows.bytes(row, 3) }.map { $0 + 1 })
                },
                holders: (0..<holders.count).map { row in
                    HolderReport(
                        client: holders.text(row, 0) ?? "", holder: holders.text(row, 1) ?? "",
                        left: .microseconds(holders.integer(row, 2) ?? 0))
                },
                pendingLogins: about.integer(0, 2) ?? 0, newPlace: newPlace)
        }
    }
}

extension OAuthAccessTokenPostgresStore: MovableTokenStore {
    package var place: String { settings.place }

    /// Behind a pooler that gives each transaction another connection, a running proxy is not seen. It gets no lease any
    /// more once the note is written.
    package func prepareMove(alone: Bool) async throws {
        try await open()
        engine.isMoving.store(true, ordering: .relaxed)
        guard alone, !listener.isPolling else { return }
        let isAlone = try await judging {
            let space = settings.space
            return try await listener.run(Statements.useAlone, { [.text(space)] }, within: settings.answerTime)
                .rows.flag(0, 0)
        }
        if !isAlone { throw MovedStore.inUse(place) }
    }

    package func newPlace() async throws -> String? {
        try await judging {
            let space = settings.space
            return try await listener.run(Statements.newPlace, { [.text(space)] }, within: settings.answerTime)
                .rows.text(0, 0)
        }
    }

    package func setNewPlace(_ place: String?) async throws {
        try await judging {
            let space = settings.space
            _ = try await listener.run(
                Statements.setNewPlace, { [.text(space), place.map { .text($0) } ?? .null] },
                within: settings.answerTime)
        }
    }
}

extension OAuthAccessTokenPostgresStore: PendingLoginStore {
    /// The most that is kept in one database.
    private static let maxPending: Int64 = 4096

    public func putPending(_ content: Secret, key: String, life: Duration) async throws {
        let name = Hex.bytes(["pending", settings.space, key])
        let sealed = try sealing.seal(content, for: "pending", name)
        try await judging {
            let (space, limit) = (settings.space, settings.answerTime)
            let values: [PostgresLink.Value] = [
                .text(space), .bytes(name), .bytes(sealed), .integer(max(0, life.microseconds)),
            ]
            let again = try await listener.run(Statements.putAgain, { values }, within: limit)
            if again.rows.tag == "UPDATE 1" { return }
            let anew = try await listener.run(
                Statements.putAnew, { values + [.integer(Self.maxPending)] }, within: limit)
            guard anew.rows.tag == "INSERT 0 1" else {
                throw TokenStoreError("\(Self.maxPending) logins are under way: try again in some minutes")
            }
        }
    }

    public func takePending(key: String) async throws -> Secret? {
        let name = Hex.bytes(["pending", settings.space, key])
        return try await judging {
            let space = settings.space
            let answer = try await listener.run(
                Statements.takePending, { [.text(space), .bytes(name)] }, within: settings.answerTime)
            guard let sealed = answer.rows.bytes(0, 0) else { return nil }
            return try sealing.open(sealed, for: "pending", name)
        }
    }
}
