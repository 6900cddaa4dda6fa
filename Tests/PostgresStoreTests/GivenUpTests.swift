import Foundation
import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

@Suite struct `Statements that were given up` {
    private let server: PostgresServer
    private let database: Postgres

    init() async throws {
        server = try await PostgresServer()
        database = try await Postgres(server)
    }

    /// Connections of the server that come from stores.
    private func processes(_ which: String = "true") async throws -> Int {
        let text = try await server.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'heimdallr-proxy' AND \(which)")
        return try #require(Int(text.dropLast()))
    }

    /// Tries to write until it has failed this often.
    private func fail(_ store: OAuthAccessTokenPostgresStore, _ name: String, times: Int) async throws {
        let failures = Recorder<Int>()
        try await eventually("\(times) writes of \(name) fail") {
            let key = "\(name) \(failures.all.count)"
            do { try await store.putPending(Secret("x"), key: key, life: .seconds(60)) } catch { failures.append(1) }
            return failures.all.count >= times
        }
    }

    @Test(
        "a locked table costs the server no process for each try, and no row is changed once it is free",
        arguments: [false, true])
    func locked(isPooled: Bool) async throws {
        let bouncer = isPooled ? try await PgBouncer(before: server) : nil
        var stores: [OAuthAccessTokenPostgresStore] = []
        for _ in 0..<2 {
            stores.append(try await database.store(bouncer?.connection) { $0.answerTime = .milliseconds(400) })
        }
        try await server.session(named: "migration", ["BEGIN", "LOCK TABLE heimdallr.pending"])
        for (index, store) in stores.enumerated() { try await fail(store, "store \(index)", times: 8) }
        let which = isPooled ? "datname = 'postgres'" : "true"
        #expect(try await processes(which) <= stores.count * 2)
        try await server.endSession(named: "migration")
        try await eventually("nothing is active") { try await processes("state = 'active'") == 0 }
        #expect(try await server.sql("SELECT count(*) FROM heimdallr.pending") == "0\n")
        for store in stores { try await store.putPending(Secret("x"), key: "good", life: .seconds(60)) }
    }

    @Test("commits that wait for a standby that is away leave a bounded number of processes, and the bound is said")
    func standby() async throws {
        let store = try await database.store { $0.answerTime = .milliseconds(400) }
        try await server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try await server.sql("SELECT pg_reload_conf()")
        let tries = Recorder<Int>()
        try await eventually("the bound is reached") {
            tries.append(1)
            try? await store.putPending(Secret("x"), key: "\(tries.all.count)", life: .seconds(60))
            return store.fault?.description.contains("3 statements that were given up") == true
        }
        #expect(try await processes() <= 4)
        try await server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        try await server.sql("SELECT pg_reload_conf()")
        try await eventually("it is back") {
            (try? await store.putPending(Secret("x"), key: "good", life: .seconds(60))) != nil
        }
    }

    @Test("a statement that the server gets after it was given up is not carried out")
    func late() async throws {
        // Time itself: on a busy machine, a shorter time may have ended before the statement is sent.
        let store = try await database.store { $0.answerTime = .seconds(2) }
        let text = try await server.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'heimdallr-proxy'")
        let process = try #require(Int32(text.dropLast()))
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        #expect(await storeFault { try await store.putPending(Secret("x"), key: "late", life: .seconds(60)) } != nil)
        kill(process, SIGCONT)
        try await eventually("that process has ended") {
            try await server.sql("SELECT count(*) FROM pg_stat_activity WHERE pid = \(process)") == "0\n"
        }
        #expect(try await server.sql("SELECT count(*) FROM heimdallr.pending") == "0\n")
    }

    @Test("a statement that the server does not end by itself is cancelled")
    func cancelled() async throws {
        let libpq = try Libpq.load()
        let link = PostgresLink(try ConnectionTarget(Secret(server.connection), anchors: nil, libpq), libpq)
        link.abandoned.patience = .milliseconds(100)
        try link.open(by: .now + .seconds(20))
        // Without the server's clock, its statements have no time limit.
        link.clock = nil
        #expect(throws: PostgresFault.self) { try link.run("SELECT pg_sleep(600)", by: .now + .milliseconds(300)) }
        #expect(link.abandoned.count == 1)
        let start = ContinuousClock.now
        while link.abandoned.count > 0, .now - start < .seconds(30) {
            link.abandoned.look()
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(link.abandoned.count == 0)
        try await eventually("its process has gone") { try await processes() == 0 }
    }
}
