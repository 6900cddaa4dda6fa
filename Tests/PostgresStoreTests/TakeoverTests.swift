import Foundation
import Glibc
import Heimdallr
import SharedStore
import Synchronization
import TestSupport
import Testing

@testable import PostgresStore

/// The row decides who takes over a mark that has ended. The tests write its states by SQL, so none waits for time.
@Suite struct `A mark that has ended` {
    private static let microseconds = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    private let database: Postgres
    private let store: OAuthAccessTokenPostgresStore

    init() async throws {
        database = try await Postgres()
        store = try await database.store()
        try await store.save(record(1, "R1"), client: "billing")
    }

    /// - Parameters:
    ///   - state: of the holder: `contested` or `taken`, and how many seconds ago.
    ///   - left: seconds until the mark ends.
    private func set(_ owner: String, _ state: (String, Int)? = nil, left: Int) async throws {
        let more = state.map { "|| ' \($0.0) ' || \(Self.microseconds) - \($0.1)000000" } ?? ""
        try await database.change("holder = '\(owner)' \(more), held_until = clock_timestamp() + interval '\(left) s'")
    }

    private func mark(_ owner: String = "me", revision: UInt64? = 1) async throws -> SharedRow.Mark {
        try await store.engine.mark(client: "billing", revision: revision, owner: owner, for: .seconds(30)).mark
    }

    private func holder() async throws -> String {
        let text = try await database.server.sql(
            "SELECT regexp_replace(holder, '[0-9]{6,}', '…') FROM heimdallr.token WHERE space = '\(database.space)'")
        return text.trimmingCharacters(in: .newlines)
    }

    @Test func `an ended mark is announced to be taken over, and not taken at once, however long ago it ended`()
        async throws
    {
        for left in [-1, -3600] {
            try await set("owner", left: left)
            #expect(try await mark() == .others(for: .zero))
            #expect(try await holder() == "owner contested …")
        }
    }

    @Test func `an ended mark is taken over after announcements that stand long enough without a gap, by anybody`()
        async throws
    {
        try await set("owner", ("contested", 9), left: 2)
        #expect(try await mark() == .ours)
        #expect(try await holder() == "me taken …")
        #expect(try await mark("other") != .ours)
    }

    @Test func `an ended mark is not taken over before the announcements' time`() async throws {
        try await set("owner", ("contested", 5), left: 2)
        #expect(try await mark() == .others(for: .zero))
        #expect(try await holder() == "owner contested …")
    }

    @Test func `an ended mark is announced anew after a gap, whoever announced it before, and however often`()
        async throws
    {
        try await set("owner", ("contested", 3600), left: -1)
        for contender in ["paused", "another", "paused"] { #expect(try await mark(contender) == .others(for: .zero)) }
        #expect(try await holder() == "owner contested …")
    }

    @Test func `an ended mark is not used by a takeover whose commit was late`() async throws {
        try await set("me", ("taken", 10), left: 20)
        #expect(try await mark() == .others(for: .zero))
        #expect(try await holder() == "me contested …")
    }

    @Test func `an ended mark is still its owner's, who renews or removes it while others contest it`() async throws {
        try await set("owner", ("contested", 9), left: 2)
        #expect(try await mark("owner") == .ours)
        #expect(try await holder() == "owner")
        try await set("owner", ("contested", 9), left: 2)
        try await store.engine.unmark(client: "billing", owner: "owner")
        #expect(try await holder() == "")
    }

    @Test func `a taken mark is renewed by the owner of the takeover, and by nobody else`() async throws {
        func renew(_ owner: String) async throws -> SharedRow.Mark {
            try await store.engine.renew(client: "billing", revision: 1, owner: owner, for: .seconds(30)).mark
        }
        try await set("owner", ("taken", 10), left: 20)
        #expect(try await renew("owner") == .ours)
        #expect(try await holder() == "owner")
        for state in [nil, ("contested", 9)] as [(String, Int)?] {
            try await set("owner", state, left: -1)
            #expect(try await renew("other") != .ours)
            #expect(try await holder().hasPrefix("owner"))
        }
    }

    @Test func `an ended mark does not keep its owner from saving, and a contest ends then`() async throws {
        for state in [("contested", 9), ("taken", 1)] {
            try await set("owner", state, left: 2)
            let revision = try #require(try await store.load(client: "billing")?.revision)
            #expect(try await store.engine.swap(client: "billing", revision: revision, for: record(1, "R")) != nil)
            #expect(try await mark(revision: revision) == .none)
            #expect(try await holder() == "")
        }
    }

    @Test func `a takeover is announced to the mark's owner, who may have a record to save`() async throws {
        let owner = try await database.store()
        let changes = try #require(owner.changes(client: "billing"))
        let heard = Recorder<Int>()
        let listening = Task { for await _ in changes { heard.append(1) } }
        try await set("owner", left: -1)
        let before = heard.all.count
        #expect(try await mark() != .ours)
        try await eventually("the owner hears of it") { heard.all.count > before }
        listening.cancel()
    }

    @Test func `an ended mark is left alone by replicas that know no announcements, as long as there are some`()
        async throws
    {
        try await set("owner", left: -1)
        #expect(try await mark() != .ours)
        // The condition of the earlier statement.
        let taken = try await database.server.sql(
            "SELECT count(*) FROM heimdallr.token WHERE space = '\(database.space)' AND held_until <= clock_timestamp()"
        )
        #expect(taken == "0\n")
    }
}

@Suite struct `A statement that its caller has given up` {
    @Test(arguments: ["mark", "swap", "unmark"])
    func `a statement that its caller has given up changes nothing when its lock is granted`(_ step: String)
        async throws
    {
        let database = try await Postgres(try await PostgresServer())
        let server = database.server
        let other = try await database.store()
        let store = try await database.store { $0.answerTime = .seconds(1) }
        try await other.save(record(1, "R1"), client: "billing")
        if step == "unmark" {
            _ = try await other.engine.mark(client: "billing", revision: 1, owner: "me", for: .seconds(30))
        }
        let whole = "SELECT token::text FROM heimdallr.token AS token"
        let before = try await server.sql(whole)
        // A row's lock by a transaction that changes nothing: no condition is checked again when it ends.
        let lock = try server.psql(
            "BEGIN", "SELECT 'locked' FROM heimdallr.token FOR UPDATE", "SELECT pg_sleep(1000)")
        try await eventually("the row is locked") { lock.output.contains("locked") }
        let fault = await storeFault {
            switch step {
            case "mark": _ = try await store.engine.mark(client: "billing", revision: 1, owner: "me", for: .seconds(30))
            case "swap": _ = try await store.engine.swap(client: "billing", revision: 1, for: record(2, "R2"))
            default: try await store.engine.unmark(client: "billing", owner: "me")
            }
        }
        #expect(fault?.kind == .unreachable)
        try await server.end("pg_sleep(1000)")
        try await eventually("no statement is left") {
            try await server.sql(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'heimdallr-proxy' AND state = 'active'")
                == "0\n"
        }
        #expect(try await server.sql(whole) == before)
    }

    @Test func `a statement is not taken for a given-up one because another server has another clock`() async throws {
        let database = try await Postgres()
        let store = try await database.store()
        /// The last reading is of a server whose clock was in 1970.
        func change() { store.engine.reading.withLock { $0 = ServerReading(server: 0, asked: .now, heard: .now) } }
        change()
        let lease = try #require(try await store.lease(client: "billing"))
        change()
        try await store.save(record(1, "R1"), client: "billing")
        #expect(try await database.store().load(client: "billing")?.refreshToken == Secret("R1"))
        await lease.release()
        let next = try #require(try await store.lease(client: "billing"))
        change()
        await next.release()
        #expect(try await database.store().lease(client: "billing")?.isHeld() == true)
    }
}
