import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

@Suite struct `A transaction of the store` {
    @Test func `a transaction is over behind its statement, or else the connection is lost`() async throws {
        let database = try await Postgres()
        let store = try await database.store()
        try await store.save(record(1, "R1"), client: "billing")
        // As a pooler that leaves a transaction open.
        let fault = await #expect(throws: PostgresFault.self) {
            try await store.session.perform(within: .seconds(5)) { link, deadline in
                try link.run(script: "BEGIN", by: deadline)
            }
        }
        #expect(fault?.kind == .lost)
        try await store.save(record(2, "R2"), client: "billing")
        #expect(try await database.store().load(client: "billing")?.refreshToken == Secret("R2"))
    }

    @Test func `a transaction is repeated when the server undoes it because of another one, in a lease too`()
        async throws
    {
        let server = try await PostgresServer()
        try await server.sql("ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'")
        let database = try await Postgres(server)
        let store = try await database.store { $0.patience = .seconds(20) }
        try await store.save(record(1, "R1"), client: "billing")
        let gate = try server.psql("SELECT 'closed', pg_advisory_lock(1)", "SELECT pg_sleep(1000)")
        try await eventually("the gate is closed") { gate.output.contains("closed") }
        let other = try server.psql(
            "BEGIN", "UPDATE heimdallr.token SET saved_at = saved_at", "SELECT 'changed'", "SELECT pg_advisory_lock(1)",
            "COMMIT")
        try await eventually("the row is changed") { other.output.contains("changed") }
        let leasing = Task { try await store.lease(client: "billing") }
        try await eventually("the mark waits for the other transaction") {
            try await server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted")
                == "1\n"
        }
        try await server.end("pg_sleep(1000)")
        let lease = try #require(try await leasing.value)
        #expect(await lease.isHeld())
        await lease.release()
    }
}

extension PostgresServer {
    /// A session that stays until its last statement has ended.
    func psql(_ statements: String...) throws -> ChildProcess {
        try ChildProcess(
            ["/usr/lib/postgresql/15/bin/psql", "-XAtq", "-h", folder.path, "-p", "\(port)", "-U", "postgres"]
                + statements.flatMap { ["-c", $0] })
    }

    /// Ends the session that runs this statement.
    func end(_ statement: String) async throws {
        try await sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%\(statement)%'"
        )
    }
}
