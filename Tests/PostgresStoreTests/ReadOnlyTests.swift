import Foundation
import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

@Suite struct `A database that does not write` {
    private func readOnly(_ server: PostgresServer, _ isOn: Bool) async throws {
        try await server.sql(
            "ALTER SYSTEM \(isOn ? "SET" : "RESET") default_transaction_read_only\(isOn ? " = on" : "")")
        try await server.sql("SELECT pg_reload_conf()")
        try await eventually("new sessions know it") {
            try await server.sql("SHOW transaction_read_only") == (isOn ? "on\n" : "off\n")
        }
    }

    @Test("a connection to a server that stopped to write is left for a server that writes", arguments: [false, true])
    func left(isPooled: Bool) async throws {
        let (one, other) = (try await PostgresServer(), try await PostgresServer())
        let database = try await Postgres(one)
        _ = try await Postgres(other)
        let bouncer = isPooled ? try await PgBouncer(before: one) : nil
        let first = bouncer.map { ("127.0.0.1", $0.port) } ?? (one.folder.path, one.port)
        let store = try await database.store(
            "host=\(first.0),\(other.folder.path) port=\(first.1),\(other.port) user=postgres dbname=postgres sslmode=disable"
        )
        try await store.putPending(Secret("x"), key: "before", life: .seconds(60))
        #expect(try await one.sql("SELECT count(*) FROM heimdallr.pending") == "1\n")
        try await readOnly(one, true)
        try await eventually("the other server has it") {
            try? await store.putPending(Secret("x"), key: "after", life: .seconds(60))
            return try await other.sql("SELECT count(*) FROM heimdallr.pending") == "1\n"
        }
        try await eventually("it says so") { store.fault == nil }
    }

    @Test(
        "where no server writes, a replica that starts reads the records, says so, and writes once one writes",
        arguments: [false, true])
    func reads(isPooled: Bool) async throws {
        let server = try await PostgresServer()
        let database = try await Postgres(server)
        let bouncer = isPooled ? try await PgBouncer(before: server) : nil
        try await database.store().save(record(1, "R1"), client: "billing")
        try await readOnly(server, true)
        let store = try await database.store(bouncer?.connection)
        #expect(try await store.load(client: "billing")?.refreshToken == Secret("R1"))
        let fault = await storeFault { try await store.putPending(Secret("x"), key: "k", life: .seconds(60)) }
        #expect(fault?.kind == .unreachable)
        #expect(fault?.description.contains("can't be written") == true, "\(fault as Any)")
        #expect(fault?.description.contains("default_transaction_read_only") == true)
        #expect(store.fault?.description.contains("can't be written") == true, "\(store.fault as Any)")
        // A read goes on between searches for a server that writes.
        for _ in 0..<5 { #expect(try await store.load(client: "billing") != nil) }
        try await readOnly(server, false)
        try await eventually("it writes again") {
            (try? await store.putPending(Secret("x"), key: "k", life: .seconds(60))) != nil
        }
        try await eventually("it says so") { store.fault == nil }
        // What others write is heard, too.
        let changes = try #require(store.changes(client: "billing"))
        let heard = Recorder<Int>()
        let listening = Task { for await _ in changes { heard.append(1) } }
        try await database.store().save(record(2, "R2"), client: "billing")
        try await eventually("the change is told") { !heard.all.isEmpty }
        listening.cancel()
    }
}
