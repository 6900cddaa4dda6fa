import Heimdallr
import SharedStore
import TestSupport
import Testing

@testable import PostgresStore

@Suite struct `A database without the last commits` {
    private let database: Postgres
    private let (one, other): (OAuthAccessTokenPostgresStore, OAuthAccessTokenPostgresStore)

    init() async throws {
        database = try await Postgres()
        (one, other) = (try await database.store(), try await database.store())
        try await one.save(record(1, "R1"), client: "billing")
    }

    /// Puts the row back as it was before `change`, as a promoted standby has it.
    private func forgetting(_ change: () async throws -> Void) async throws {
        let copy = "copy\(UInt32.random(in: .min ... .max))"
        try await database.server.sql(
            "CREATE TABLE \(copy) AS SELECT * FROM heimdallr.token WHERE space = '\(database.space)'")
        try await change()
        try await database.server.sql(
            """
            UPDATE heimdallr.token AS row SET revision = copy.revision, sealed = copy.sealed, saved_at = copy.saved_at,
                holder = copy.holder, held_until = copy.held_until
            FROM \(copy) AS copy WHERE row.space = copy.space AND row.client = copy.client; DROP TABLE \(copy)
            """)
    }

    private func save(_ record: TokenRecord) async throws {
        let lease = try await one.lease(client: "billing")
        try await one.save(record, client: "billing")
        await lease?.release()
    }

    @Test(arguments: ["a read", "a lease", "a lease for what is known", "a late save"])
    func `a database without the last commits gets the newest record from a process that knows it`(_ way: String)
        async throws
    {
        try await forgetting {
            try await save(record(2, "R2"))
            try await save(record(3, "R3"))
        }
        switch way {
        case "a read": #expect(try await one.load(client: "billing")?.refreshToken == Secret("R3"))
        case "a lease", "a lease for what is known":
            let lease =
                way == "a lease"
                ? try await one.lease(client: "billing") : try await one.lease(client: "billing", unlessLaterThan: 3)
            #expect(await lease?.isHeld() == true)
            #expect(try await one.load(client: "billing")?.refreshToken == Secret("R3"))
            await lease?.release()
        default:
            try await one.save(record(4, "R4"), client: "billing")
            #expect(try await database.store().load(client: "billing")?.refreshToken == Secret("R4"))
            return
        }
        let fresh = try await database.store().load(client: "billing")
        #expect(fresh?.refreshToken == Secret("R3"))
        #expect(fresh?.revision == 3)
    }

    @Test func `a database gets a lost record from the process that knows the newest, although another comes first`()
        async throws
    {
        try await forgetting {
            try await save(record(2, "R2"))
            #expect(try await other.load(client: "billing")?.refreshToken == Secret("R2"))
            try await save(record(3, "R3"))
        }
        #expect(try await other.load(client: "billing")?.refreshToken == Secret("R2"))
        #expect(try await one.load(client: "billing")?.refreshToken == Secret("R3"))
        #expect(try await other.load(client: "billing")?.refreshToken == Secret("R3"))
    }

    @Test func `restoring a lost record does not bring a sign-in back that has ended`() async throws {
        try await forgetting { try await one.remove(client: "billing") }
        #expect(try await one.load(client: "billing")?.refreshToken == nil)
        #expect(try await database.store().load(client: "billing")?.refreshToken == nil)
    }

    @Test func `a database keeps a sign-in of after the loss, which has the lower revision`() async throws {
        try await forgetting {
            try await save(record(2, "R2"))
            try await save(record(3, "R3", age: 100))
            #expect(try await other.load(client: "billing")?.refreshToken == Secret("R3"))
        }
        // A process that knows nothing of the lost revisions.
        let fresh = try await database.store()
        let lease = try await fresh.lease(client: "billing")
        try await fresh.save(record(2, "signed in"), client: "billing")
        await lease?.release()
        let loaded = try await other.load(client: "billing")
        #expect(loaded?.refreshToken == Secret("signed in"))
        #expect(loaded?.revision ?? 0 > 3, "so the others take it over")
        #expect(try await fresh.load(client: "billing")?.refreshToken == Secret("signed in"))
    }

    @Test func `a lost mark of a request under way comes back from its owner, on the first connection`() async throws {
        let server = try await PostgresServer()
        let database = try await Postgres(server)
        let store = try await database.store()
        try await store.save(record(1, "R1"), client: "billing")
        let lease = try #require(try await store.lease(client: "billing"))
        // Another server has another connection, and lacks the mark.
        try await database.change("holder = NULL, held_until = NULL")
        try await server.sql(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'heimdallr-proxy'")
        try await eventually("the row is marked again") {
            try await server.sql("SELECT count(holder) FROM heimdallr.token") == "1\n"
        }
        #expect(await lease.isHeld())
        await lease.release()
        #expect(try await server.sql("SELECT count(holder) FROM heimdallr.token") == "0\n")
    }

    @Test func `a server tells that it was started or promoted a moment ago`() async throws {
        let libpq = try Libpq.load()
        let link = PostgresLink(try ConnectionTarget(Secret(database.server.connection), anchors: nil, libpq), libpq)
        try link.open(by: .now + .seconds(20))
        for (age, isYoung) in [(Duration.seconds(86400), true), (.zero, false)] {
            let answer = try link.run(Statements.isYoung, [.integer(age.microseconds)], by: .now + .seconds(20))
            #expect(answer.flag(0, 0) == isYoung)
        }
    }
}

@Suite struct `A process that starts at a server without the last commits` {
    @Test func `a process takes no lease at a young server before the others have restored what they know`()
        async throws
    {
        let server = try await PostgresServer()
        let database = try await Postgres(server)
        let one = try await database.store()
        try await one.save(record(1, "R1"), client: "billing")
        try await server.sql("CREATE TABLE copy AS SELECT * FROM heimdallr.token")
        try await one.save(record(2, "R2"), client: "billing")
        try await server.sql(
            "UPDATE heimdallr.token AS row SET revision = copy.revision, sealed = copy.sealed FROM copy")
        let other = try await database.store { $0.youth = .seconds(600) }
        async let lease = other.lease(client: "billing")
        let asks =
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%locked AS MAT%' AND pid <> pg_backend_pid()"
        try await eventually("it asks for the lease") { try await server.sql(asks) == "t\n" }
        #expect(try await server.sql("SELECT holder IS NULL FROM heimdallr.token") == "t\n")
        #expect(try await one.load(client: "billing")?.refreshToken == Secret("R2"))
        let held = try await lease
        #expect(try await other.load(client: "billing")?.refreshToken == Secret("R2"))
        await held?.release()
    }
}
