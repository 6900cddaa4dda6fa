import Foundation
import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

@Suite struct `The tables of the store in PostgreSQL` {
    private let server: PostgresServer
    private let store: OAuthAccessTokenPostgresStore

    /// Starts a separate server, because these tests change and lock its tables.
    init() async throws {
        server = try await PostgresServer()
        store = try OAuthAccessTokenPostgresStore(
            PostgresStoreSettings(connection: Secret(server.connection), keys: [try Postgres.key(1)]))
        try await store.makeSchema()
    }

    private func columns() async throws -> String {
        try await server.sql(
            "SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_attribute "
                + "WHERE attrelid = 'heimdallr.token'::regclass AND attnum > 0 AND NOT attisdropped")
    }

    private static let backup = [
        "BEGIN", "LOCK TABLE heimdallr.token, heimdallr.version, heimdallr.pending IN ACCESS SHARE MODE",
    ]

    @Test("a second run of the schema locks nothing and ends while a backup reads all tables")
    func again() async throws {
        try await server.session(named: "nightly backup", Self.backup)
        try await store.makeSchema(role: "limited")
        try await server.sql(PostgresSchema.sql(role: "limited"))
        #expect(try await server.sql("SELECT has_table_privilege('limited', 'heimdallr.token', 'UPDATE')") == "t\n")
    }

    @Test(
        "a change that has to wait for another session's lock names the session, changes nothing, and leaves nothing queued",
        arguments: [
            (Self.backup, "nightly backup (process "),
            (["BEGIN", "SELECT 'hunter2'", "LOCK TABLE heimdallr.version"], "nightly backup (process "),
            (["BEGIN", "LOCK TABLE heimdallr.token", "PREPARE TRANSACTION 'lost'"], "the prepared transaction lost"),
            (["BEGIN", "SELECT pg_advisory_xact_lock(7521958312837410913)"], "nightly backup (process "),
        ])
    func locked(statements: [String], name: String) async throws {
        try await server.sql("ALTER TABLE heimdallr.token DROP COLUMN holder; UPDATE heimdallr.version SET version = 1")
        let before = try await columns()
        try await server.session(named: "nightly backup", statements)
        let fault = await storeFault { try await store.makeSchema() }
        #expect(fault?.description.contains("locked by \(name)") == true, "\(fault?.description ?? "")")
        #expect(fault?.description.contains("hunter2") == false)
        #expect(fault?.description.contains("run it again when that session has ended") == true)
        #expect(fault?.kind == .unreachable, "a later run can succeed")
        // The same by the administrator's program.
        let printed = await #expect(throws: (any Error).self) { try await server.sql(PostgresSchema.sql()) }
        #expect("\(printed.map { "\($0)" } ?? "")".contains("locked by \(name)"), "\(printed.map { "\($0)" } ?? "")")
        #expect(try await server.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0\n")
        #expect(try await columns() == before)
        if name.contains("prepared") { try await server.sql("ROLLBACK PREPARED 'lost'") }
        try await server.endSession(named: "nightly backup")
        try await store.makeSchema()
        #expect(try await columns() != before)
    }

    @Test("tables of the first version get their columns while replicas of it read and write without a pause")
    func load() async throws {
        try await server.sql(
            """
            ALTER TABLE heimdallr.token DROP COLUMN holder, DROP COLUMN held_until;
            UPDATE heimdallr.version SET version = 1;
            INSERT INTO heimdallr.token (space, client) SELECT 'default', 'c' || n FROM generate_series(1, 50) n;
            """)
        let old = (0..<6).map { index in
            Task {
                while !Task.isCancelled {
                    try await server.sql(
                        "UPDATE heimdallr.token SET revision = revision + 1 WHERE client = 'c\(index)';"
                            + "SELECT count(*) FROM heimdallr.token")
                }
            }
        }
        try await eventually("replicas write") {
            try await server.sql("SELECT sum(revision) > 20 FROM heimdallr.token") == "t\n"
        }
        try await store.makeSchema()
        for task in old {
            task.cancel()
            do { try await task.value } catch is CancellationError {}
        }
        #expect(try await columns().contains("held_until holder"))
        #expect(try await server.sql("SELECT version FROM heimdallr.version") == "\(Statements.version)\n")
    }

    @Test("a role that may not make tables is told who has to make them, and one whose tables are there needs no right")
    func mayNot() async throws {
        let limited = try OAuthAccessTokenPostgresStore(
            PostgresStoreSettings(
                connection: Secret("host=\(server.folder.path) port=\(server.port) user=limited dbname=postgres"),
                keys: [try Postgres.key(1)]))
        try await server.sql(
            "GRANT USAGE ON SCHEMA heimdallr TO limited; GRANT SELECT ON ALL TABLES IN SCHEMA heimdallr TO limited")
        try await limited.makeSchema()
        try await server.sql("DROP SCHEMA heimdallr CASCADE")
        let fault = await storeFault { try await limited.makeSchema() }
        #expect(fault?.kind == .misconfigured)
        #expect(fault?.description.contains("may not make the tables (CREATE)") == true, "\(fault?.description ?? "")")
        #expect(fault?.description.contains("store init --sql --role") == true)
    }

    @Test("a role's name can't end the block that has it")
    func names() async throws {
        let name = "a\"b'c\\d$heimdallr$e $heimdallr_11$f"
        let quoted = name.replacing("\"", with: "\"\"")
        try await server.sql("CREATE ROLE \"\(quoted)\"")
        try await server.sql(PostgresSchema.sql(role: name))
        let literal = name.replacing("'", with: "''")
        #expect(try await server.sql("SELECT has_table_privilege('\(literal)', 'heimdallr.token', 'INSERT')") == "t\n")
    }
}
