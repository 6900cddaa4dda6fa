import Foundation
import Glibc
import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

@Suite struct `The store in PostgreSQL, when something goes wrong` {
    // MARK: Owners of marks

    @Test(
        "the row of an owner that was killed is free when its mark ends, and as it was",
        arguments: ["lease-got", "before-update"])
    func killed(point: String) async throws {
        let database = try await Postgres()
        let store = try await database.store { $0.patience = .seconds(20) }
        try await store.save(record(1, "R1"), client: "billing")
        let owner = try database.contender("R2", fault: "\(point):kill")
        #expect(try await owner.ended() == .signalled(SIGKILL), "\(owner.transcript)")
        let start = ContinuousClock.now
        let lease = try await store.lease(client: "billing")
        #expect(.now - start < .seconds(15))
        #expect(try await store.load(client: "billing")?.refreshToken == Secret("R1"))
        await lease?.release()
    }

    @Test("a committed record is there, although its owner did not live to hear it")
    func killedAfterCommit() async throws {
        let database = try await Postgres()
        let owner = try database.contender("R2", fault: "after-commit:kill")
        #expect(try await owner.ended() == .signalled(SIGKILL))
        #expect(try await database.store().load(client: "billing")?.refreshToken == Secret("R2"))
    }

    @Test(
        "an owner that stands still loses its lease after the time for it, and its late write yields to a later record")
    func stopped() async throws {
        let database = try await Postgres()
        let store = try await database.store { $0.patience = .seconds(20) }
        let owner = try database.contender("late", fault: "before-update:stop")
        try await eventually("the owner stands") { owner.output.contains("fault before-update") }
        let lease = try #require(try await store.lease(client: "billing"))
        try await store.save(record(1, "R2"), client: "billing")
        await lease.release()
        owner.signal(SIGCONT)
        #expect(try await owner.ended() == .exited(0), "\(owner.transcript)")
        #expect(owner.output.contains("failed superseded"), "\(owner.transcript)")
        #expect(try await store.load(client: "billing")?.refreshToken == Secret("R2"))
    }

    @Test("a late write that nobody has overtaken goes in")
    func lateButAlone() async throws {
        let database = try await Postgres()
        let store = try await database.store { $0.leaseTime = .milliseconds(100) }
        try await store.save(record(1, "R1"), client: "billing")
        let lease = try await store.lease(client: "billing")
        // Time itself: the lease has ended twice over.
        try await Task.sleep(for: .milliseconds(200))
        try await store.save(record(2, "R2"), client: "billing")
        await lease?.release()
        #expect(try await database.store().load(client: "billing")?.refreshToken == Secret("R2"))
    }

    @Test("a lease outlives its connections: others wait, and its owner saves over new ones")
    func terminated() async throws {
        let database = try await Postgres(try await PostgresServer())
        let (store, other) = (try await database.store(), try await database.store())
        try await store.save(record(1, "R1"), client: "billing")
        let lease = try #require(try await store.lease(client: "billing"))
        try await database.server.sql(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'heimdallr-proxy'")
        #expect(await lease.isHeld())
        #expect(await storeFault { _ = try await other.lease(client: "billing") }?.kind == .busy)
        try await store.save(record(2, "R2"), client: "billing")
        await lease.release()
        #expect(try await other.load(client: "billing")?.refreshToken == Secret("R2"))
        let late = try #require(try await other.lease(client: "billing", unlessLaterThan: 1))
        #expect(await !late.isHeld(), "there is news, and no mark")
        #expect(try await other.load(client: "billing")?.revision == 2)
        let next = try await store.lease(client: "billing")
        await next?.release()
        await late.release()
    }

    // MARK: The database

    @Test("kill -9 of the database: the fault is said at once and again, and all goes on when it is back")
    func crash() async throws {
        let server = try await PostgresServer()
        let database = try await Postgres(server)
        let store = try await database.store {
            $0.patience = .seconds(1)
            $0.leaseTime = .seconds(2)
        }
        try await store.save(record(1, "R1"), client: "billing")
        let lease = try await store.lease(client: "billing")
        let changes = try #require(store.changes(client: "billing"))
        let heard = Recorder<Int>()
        let listening = Task { for await _ in changes { heard.append(1) } }
        try await server.crash()
        #expect(await storeFault { try await store.save(record(2, "R2"), client: "billing") }?.kind == .unreachable)
        await lease?.release()
        let start = ContinuousClock.now
        for _ in 0..<50 {
            #expect(await storeFault { _ = try await store.load(client: "billing") }?.kind == .unreachable)
            #expect(await storeFault { _ = try await store.lease(client: "billing") }?.kind == .unreachable)
        }
        #expect(.now - start < .seconds(5), "who is known to be away holds nobody up")
        try await server.restart()
        try await eventually("it is back") { (try? await store.load(client: "billing")) != nil }
        // The retry of what could not be saved.
        try await store.save(record(2, "R2"), client: "billing")
        #expect(try await database.store().load(client: "billing")?.refreshToken == Secret("R2"))
        try await eventually("who listens is told to look") { !heard.all.isEmpty }
        listening.cancel()

        // A commit that is carried out, and whose answer is late: it is looked up, and not written twice.
        let slow = try await database.store {
            $0.answerTime = .milliseconds(700)
            $0.patience = .seconds(15)
        }
        let again = try await slow.lease(client: "billing")
        try await server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try await server.sql("SELECT pg_reload_conf()")
        // The server takes the setting up in its own time: from the first commit on that waits.
        let witness = Task {
            while !Task.isCancelled {
                _ = try? await server.sql("CREATE TABLE IF NOT EXISTS witness (); DROP TABLE witness")
            }
        }
        try await eventually("a commit waits") {
            try await server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "1\n"
        }
        witness.cancel()
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'heimdallr-proxy'"
        let before = try await server.sql(sessions)
        let saving = Task { try await slow.save(record(3, "R3"), client: "billing") }
        try await eventually("the commit waits") {
            try await server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "2\n"
        }
        try await eventually("it gives the answer up") { try await server.sql(sessions) != before }
        try await server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        try await server.sql("SELECT pg_reload_conf()")
        try await saving.value
        await again?.release()
        #expect(try await database.row().hasPrefix("3|"))
        #expect(try await database.store().load(client: "billing")?.refreshToken == Secret("R3"))
    }

    @Test("a server that never answers costs its callers the time that was said, and then none")
    func silence() async throws {
        let database = try await Postgres()
        let listener = try RawListener()
        var settings = try database.settings(
            "host=127.0.0.1 port=\(listener.port) user=x sslmode=disable connect_timeout=1")
        settings.answerTime = .seconds(2)
        let store = try OAuthAccessTokenPostgresStore(settings)
        let first = ContinuousClock.now
        #expect(await storeFault { try await store.prepare() }?.kind == .unreachable)
        #expect(.now - first < .seconds(4))
        let then = ContinuousClock.now
        for _ in 0..<20 {
            #expect(await storeFault { _ = try await store.load(client: "billing") }?.kind == .unreachable)
        }
        #expect(.now - then < .seconds(7))
        store.close()
    }

    @Test("a process of the server that stands still holds nobody up: another one takes the record")
    func hung() async throws {
        let server = try await PostgresServer()
        let database = try await Postgres(server)
        let store = try await database.store {
            $0.answerTime = .milliseconds(500)
            $0.patience = .seconds(15)
        }
        let lease = try await store.lease(client: "billing")
        let text = try await server.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'heimdallr-proxy'")
        let process = try #require(Int32(text.dropLast()))
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        try await store.save(record(1, "R1"), client: "billing")
        await lease?.release()
        #expect(try await database.store().load(client: "billing")?.refreshToken == Secret("R1"))
        #expect(try await database.row().hasPrefix("1|"))
    }

    @Test("a database that does not listen is told at once, with its address, and the start goes on")
    func refused() async throws {
        let database = try await Postgres()
        let port = try freePort()
        let fault = await storeFault {
            _ = try await database.store(
                "host=127.0.0.1,\(database.server.folder.path) port=\(port) user=postgres password=hunter22")
        }
        #expect(fault?.kind == .unreachable)
        #expect(fault?.description.contains("\(port)") == true)
        // Of several, the next is taken.
        let store = try await database.store(
            "host=127.0.0.1,\(database.server.folder.path) port=\(port),\(database.server.port) user=postgres")
        #expect(try await store.load(client: "nobody") == nil)
    }

    // MARK: Faults for an operator

    @Test("missing tables, missing rights, a wrong password and another version each say what to do, without secrets")
    func misconfigured() async throws {
        let database = try await Postgres()
        func start(_ connection: String) async -> TokenStoreError? {
            await storeFault { _ = try await database.store(connection) }
        }
        let tcp = "host=127.0.0.1 port=\(database.server.port) sslmode=require"
        let wrong = await start("\(tcp) user=limited dbname=postgres password='pass word wrong'")
        #expect(wrong?.kind == .misconfigured)
        #expect(wrong?.description.contains("password authentication failed") == true)
        #expect(wrong?.description.contains("pass word wrong") == false)
        let missing = await start("\(database.server.connection) dbname=nowhere")
        #expect(missing?.kind == .misconfigured)
        #expect(missing?.description.contains("database") == true)
        let tables = await start("\(database.server.connection) dbname=template1")
        #expect(tables?.kind == .misconfigured)
        #expect(tables?.description.contains("store init") == true)
        try await database.server.sql("CREATE ROLE \"nobody\(database.space)\" LOGIN")
        let rights = await start("\(database.server.connection) user='nobody\(database.space)'")
        #expect(rights?.kind == .misconfigured)
        #expect(rights?.description.contains("grant") == true)
    }

    @Test("a role that may read, add and change rows is enough, over TLS with a password that needs quotes")
    func limited() async throws {
        let database = try await Postgres()
        let quoted = PostgresServer.password.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
        let connection = "host=localhost port=\(database.server.port) user=limited dbname=postgres password='\(quoted)'"
        let store = try await database.store(connection) {
            $0.trustAnchorsFile = database.server.authority.certificateFile
        }
        let lease = try await store.lease(client: "billing")
        try await store.save(record(1, "R1"), client: "billing")
        await lease?.release()
        try await store.remove(client: "billing")
        try await store.putPending(Secret("x"), key: "k", life: .seconds(9))
        #expect(try await store.takePending(key: "k") == Secret("x"))
        #expect(try await store.load(client: "billing")?.refreshToken == nil)
        // The same as a URI.
        let password = PostgresServer.password.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        let uri = "postgresql://limited:\(password)@localhost:\(database.server.port)/postgres"
        _ = try await database.store(uri) { $0.trustAnchorsFile = database.server.authority.certificateFile }
    }

    @Test("a certificate for another name, or of nobody that is trusted, is refused, without a word about sslmode")
    func certificates() async throws {
        let database = try await Postgres()
        let anchors = database.server.authority.certificateFile
        let user = "port=\(database.server.port) user=postgres dbname=postgres"
        for (connection, anchors) in [("host=127.0.0.1 \(user)", anchors), ("host=localhost \(user)", nil)] {
            let fault = await storeFault {
                _ = try await database.store(connection) { $0.trustAnchorsFile = anchors }
            }
            #expect(fault != nil, "\(connection)")
            #expect(fault?.description.contains("certificate") == true, "\(fault?.description ?? "")")
        }
        _ = try await database.store("host=localhost \(user) hostaddr=127.0.0.1 sslrootcert=\(anchors)")
    }

    @Test("variables of the environment, a service and ~/.pgpass don't count")
    func environment() async throws {
        let database = try await Postgres()
        let home = try TemporaryDirectory()
        let nonsense: [String: String?] = [
            "PGHOST": "nowhere.invalid", "PGHOSTADDR": "192.0.2.1", "PGPORT": "1", "PGDATABASE": "nowhere",
            "PGUSER": "nobody", "PGPASSWORD": "wrong", "PGPASSFILE": "/nowhere", "PGSERVICE": "nothing",
            "PGSERVICEFILE": "/nowhere", "PGOPTIONS": "-c nonsense=1", "PGAPPNAME": "other", "PGSSLMODE": "nonsense",
            "PGREQUIRESSL": "1", "PGSSLCERT": "/nowhere", "PGSSLROOTCERT": "/nowhere", "PGCLIENTENCODING": "nonsense",
            "PGTZ": "nonsense", "PGDATESTYLE": "nonsense", "PGGEQO": "nonsense", "PGTARGETSESSIONATTRS": "nonsense",
            "PGCHANNELBINDING": "nonsense", "PGGSSENCMODE": "nonsense", "PGCONNECT_TIMEOUT": "x",
            "PGSSLMINPROTOCOLVERSION": "nonsense", "PGREQUIREPEER": "nobody", "HOME": home.path,
        ]
        for connection in [
            database.server.connection, database.server.plainConnection,
            "host=\(database.server.folder.path) port=\(database.server.port) user=postgres",
        ] {
            var environment = nonsense
            environment["CONNECTION"] = connection
            let contender = try database.contender("R", environment: environment)
            #expect(try await contender.ended() == .exited(0))
            #expect(contender.output.contains("saved"), "\(contender.transcript)")
        }
        // The password in ~/.pgpass would be right.
        try home.write("*:*:*:limited:\(PostgresServer.password.replacing("\\", with: "\\\\"))\n", to: ".pgpass")
        let contender = try database.contender(
            "R",
            environment: [
                "HOME": home.path,
                "CONNECTION":
                    "host=127.0.0.1 port=\(database.server.port) user=limited dbname=postgres sslmode=require",
            ])
        try await contender.ended()
        #expect(contender.output.contains("failed misconfigured"), "\(contender.transcript)")
    }

    @Test(
        "a connection string that libpq can't read, or that leaves out what is needed, is refused, and not quoted",
        arguments: [
            "hunter2secret", "host=a password=hunter2 secret", "postgresql://u:hunter2secret@h:port/db", "",
            "dbname=hunter2secret", "host=a,b port=1,2,3 user=hunter2secret", "service=hunter2secret host=a",
            "host=a port=99999 password=hunter2secret", "host=a nonsense=hunter2secret",
        ])
    func strings(text: String) async throws {
        let settings = PostgresStoreSettings(connection: Secret(text), keys: [try Postgres.key(1)])
        let fault = await storeFault { _ = try OAuthAccessTokenPostgresStore(settings) }
        #expect(fault?.kind == .misconfigured)
        #expect(fault?.description.contains("store.connection") == true)
        #expect(fault?.description.contains("secret") == false, "\(fault?.description ?? "")")
    }

    @Test("the report tells of tables, leases and their owners, and no secret")
    func report() async throws {
        let database = try await Postgres()
        try await database.store(keys: [1]).save(record(3, "R"), client: "old")
        let store = try await database.store(keys: [2, 1])
        try await store.save(record(1, "R"), client: "new")
        let lease = try await store.lease(client: "held \(database.space)")
        let report = try await database.store(keys: [2, 1]).report()
        #expect(report.rows.map(\.client) == ["held \(database.space)", "new", "old"])
        #expect(report.rows.map(\.key) == [nil, 1, 2])
        #expect(report.rows.map(\.revision) == [0, 1, 3])
        #expect(report.leases.map(\.client) == ["held \(database.space)"])
        #expect(report.leases.allSatisfy { $0.owner.contains(":\(getpid()):") && $0.left > .seconds(1) })
        #expect(!report.isPooled)
        await lease?.release()
    }
}
