import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

@Suite struct `The store in PostgreSQL` {
    // MARK: What lies in the database

    @Test("a record's row shows nothing of its contents")
    func sealed() async throws {
        let database = try await Postgres()
        try await database.store().save(record(1, "the refresh token"), client: "billing")
        let text = try await database.server.sql(
            "SELECT encode(sealed, 'escape') FROM heimdallr.token WHERE space = '\(database.space)'")
        #expect(text.contains("heimdllr"))
        #expect(!text.contains("the refresh token"))
    }

    @Test("a row that was moved to another client or space, or put back under a newer number, is refused, and stays")
    func moved() async throws {
        let database = try await Postgres()
        let store = try await database.store()
        try await store.save(record(1, "R1"), client: "billing")
        try await store.save(record(1, "other"), client: "other")
        try await database.server.sql(
            """
            UPDATE heimdallr.token SET sealed =
                (SELECT sealed FROM heimdallr.token WHERE space = '\(database.space)' AND client = 'billing')
            WHERE space = '\(database.space)' AND client = 'other'
            """)
        #expect(await storeFault { _ = try await store.load(client: "other") }?.kind == .unreadable)
        #expect(await storeFault { try await store.save(record(9, "R"), client: "other") }?.kind == .unreadable)

        try await database.server.sql(
            "UPDATE heimdallr.token SET space = 'x\(database.space)' WHERE space = '\(database.space)'")
        let elsewhere = try await database.store { $0.space = "x" + database.space }
        #expect(await storeFault { _ = try await elsewhere.load(client: "billing") }?.kind == .unreadable)
        try await database.server.sql(
            "UPDATE heimdallr.token SET space = '\(database.space)' WHERE space = 'x\(database.space)'")
        #expect(try await store.load(client: "billing")?.refreshToken == Secret("R1"))

        try await database.change("revision = 7")
        #expect(await storeFault { _ = try await store.load(client: "billing") }?.kind == .unreadable)
        try await database.change("revision = 1")
        #expect(try await store.load(client: "billing")?.refreshToken == Secret("R1"))
    }

    @Test("with rotated keys records of an earlier one are read, and sealed anew when they are next saved")
    func keys() async throws {
        let database = try await Postgres()
        try await database.store(keys: [1]).save(record(1, "R1"), client: "billing")
        let both = try await database.store(keys: [2, 1])
        #expect(try await both.load(client: "billing")?.refreshToken == Secret("R1"))
        let stranger = try await database.store(keys: [3])
        let fault = await storeFault { _ = try await stranger.load(client: "billing") }
        #expect(fault?.kind == .unreadable)
        #expect(fault?.description.contains("store.keys") == true)
        let before = try await database.row()
        _ = await storeFault { try await stranger.save(record(2, "R2"), client: "billing") }
        #expect(try await database.row() == before)
        try await both.save(record(2, "R2"), client: "billing")
        #expect(try await database.store(keys: [2]).load(client: "billing")?.refreshToken == Secret("R2"))
        #expect(await storeFault { _ = try await database.store(keys: [1]).load(client: "billing") } != nil)
    }

    // MARK: Time

    @Test("a machine whose clock is an hour off gives no token more or less of its life")
    func clocks() async throws {
        let database = try await Postgres()
        func clock(_ offset: Int64) -> HeimdallrClock {
            var clock = HeimdallrClock.system
            clock.wallClock = { HeimdallrClock.system.wallClock() + offset }
            return clock
        }
        for (writer, reader) in [(Int64(0), Int64(3600)), (-3600, 0), (3600, -3600)] {
            var saved = record(1, "R", life: 600)
            saved.issuedAt += writer
            saved.expiresAt += writer
            saved.refreshTokenLife = .init(issuedAt: now() + writer, expiresAt: now() + writer + 900)
            let client = "\(writer)"
            try await database.store(clock: clock(writer)).save(saved, client: client)
            let loaded = try #require(try await database.store(clock: clock(reader)).load(client: client))
            #expect(loaded.accessToken != nil)
            #expect((590...600).contains(loaded.expiresAt - now() - reader), "by the reader's own clock")
            let token = try #require(loaded.moments)
            #expect((.seconds(590) ... .seconds(600)).contains(ContinuousClock.now.duration(to: token.expiresAt)))
            #expect((890...901).contains((loaded.refreshTokenLife?.expiresAt ?? 0) - now() - reader))
        }
    }

    @Test("time passes by the database's clock alone; set back, it makes no token younger")
    func age() async throws {
        let database = try await Postgres()
        let store = try await database.store()
        try await store.save(record(1, "R", life: 600), client: "billing")
        try await database.change("saved_at = saved_at - interval '500 s'")
        let older = try #require(try await store.load(client: "billing"))
        #expect((90...100).contains(older.expiresAt - now()))
        for change in ["- interval '200 s'", "+ interval '1 day'"] {
            try await database.change("saved_at = saved_at \(change)")
            let loaded = try #require(try await store.load(client: "billing"))
            #expect(loaded.accessToken == nil)
            #expect(loaded.refreshToken == Secret("R"))
        }
    }

    @Test("a token of three seconds can be taken over: parts of a second are not lost on the way")
    func short() async throws {
        let database = try await Postgres()
        let now = ContinuousClock.now
        var saved = record(1, "R", life: 2)
        saved.moments = .init(issuedAt: now - .milliseconds(300), expiresAt: now + .milliseconds(2700))
        try await database.store().save(saved, client: "billing")
        let loaded = try #require(try await database.store().load(client: "billing"))
        let end = try #require(loaded.moments?.expiresAt)
        #expect(end <= now + .milliseconds(2700), "never longer than the server gave")
        #expect(end > now + .milliseconds(2000))
    }

    @Test("absurd times in a row are no trap and make no eternal token")
    func absurd() async throws {
        let database = try await Postgres()
        let store = try await database.store()
        for (index, (issued, expires)) in [
            (Int64.min, Int64.max), (.max, .min), (.min, .min), (0, .max), (.max, .max),
        ].enumerated() {
            var saved = record(1, "R")
            (saved.issuedAt, saved.expiresAt) = (issued, expires)
            saved.refreshTokenLife = .init(issuedAt: issued, expiresAt: expires)
            try await store.save(saved, client: "c\(index)")
            let loaded = try await store.load(client: "c\(index)")
            #expect(loaded?.refreshToken == Secret("R"))
            #expect(loaded?.expiresAt ?? .max < now() + 367 * 86_400)
        }
    }

    // MARK: Telling others

    @Test("a change is heard by others within a second, and not by whoever made it", arguments: [false, true])
    func changes(isPooled: Bool) async throws {
        let database = try await Postgres()
        let bouncer = isPooled ? try await PgBouncer(before: database.server) : nil
        let (one, other) = (
            try await database.store(bouncer?.connection), try await database.store(bouncer?.connection)
        )
        #expect(one.session.isPolling == isPooled)
        try await one.save(record(1, "R1"), client: "billing")
        let heard = Recorder<String>()
        var tasks: [Task<Void, Never>] = []
        for (name, store, client) in [("own", one, "billing"), ("other", other, "billing"), ("else", other, "else")] {
            let changes = try #require(store.changes(client: client))
            tasks.append(Task { for await _ in changes { heard.append(name) } })
        }
        // Notifications of the beginning have arrived.
        try await Task.sleep(for: .milliseconds(isPooled ? 1200 : 300))
        let before = heard.all.count
        let duration = try await time(until: "the other hears of it") {
            if heard.all.count == before {
                let revision = try await one.load(client: "billing")?.revision ?? 0
                try await one.save(record(revision + 1, "R"), client: "billing")
            }
            return heard.all.dropFirst(before).contains("other")
        }
        #expect(duration < .seconds(3))
        #expect(!heard.all.dropFirst(before).contains("else"))
        // A poll may see a revision before its writer has noted it as its own.
        if !isPooled { #expect(!heard.all.dropFirst(before).contains("own")) }
        for task in tasks { task.cancel() }
    }

    @Test("behind a transaction pooler leases and records work as they do without")
    func pooler() async throws {
        let database = try await Postgres()
        let bouncer = try await PgBouncer(before: database.server)
        let (one, other) = (try await database.store(bouncer.connection), try await database.store(bouncer.connection))
        let client = "pooled \(UInt32.random(in: .min ... .max))"
        let lease = try await one.lease(client: client)
        #expect(await storeFault { _ = try await other.lease(client: client) }?.kind == .busy)
        try await one.save(record(1, "R1"), client: client)
        await lease?.release()
        let next = try await other.lease(client: client)
        #expect(try await other.load(client: client)?.refreshToken == Secret("R1"))
        await next?.release()
    }

    // MARK: Many

    @Test("of eight processes at once one has the lease, and connections are never more than the limit")
    func eight() async throws {
        let database = try await Postgres()
        let stores = try await withThrowingTaskGroup(of: OAuthAccessTokenPostgresStore.self) { group in
            for _ in 0..<8 { group.addTask { try await database.store { $0.patience = .milliseconds(150) } } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let leases = await withTaskGroup(of: (any TokenStoreLease)?.self) { group in
            for store in stores { group.addTask { (try? await store.lease(client: "billing")) ?? nil } }
            return await group.reduce(into: [any TokenStoreLease]()) { if let lease = $1 { $0.append(lease) } }
        }
        #expect(leases.count == 1)
        for lease in leases { await lease.release() }
    }

    @Test("a process has one connection, however many leases")
    func connections() async throws {
        let database = try await Postgres()
        let name = "counted \(UInt32.random(in: .min ... .max))"
        @Sendable func count() async throws -> String {
            try await database.server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = '\(name)'")
        }
        let store = try await database.store("\(database.server.connection) application_name='\(name)'")
        let leases = try await withThrowingTaskGroup(of: (any TokenStoreLease)?.self) { group in
            for index in 0..<40 { group.addTask { try await store.lease(client: "\(index)") } }
            return try await group.reduce(into: [any TokenStoreLease]()) { if let lease = $1 { $0.append(lease) } }
        }
        #expect(leases.count == 40)
        #expect(try await count() == "1\n")
        for lease in leases { await lease.release() }
    }

    // MARK: Pending logins

    @Test("a login left at one process is taken at another, once, before its end")
    func pending() async throws {
        let database = try await Postgres()
        let (one, other) = (try await database.store(), try await database.store(keys: [2, 1]))
        try await one.putPending(Secret("verifier"), key: "state", life: .seconds(60))
        try await one.putPending(Secret("short"), key: "gone", life: .zero)
        #expect(try await other.takePending(key: "other") == nil)
        #expect(try await other.takePending(key: "gone") == nil)
        let taken = try await withThrowingTaskGroup(of: Secret?.self) { group in
            for index in 0..<6 {
                group.addTask { try await (index % 2 == 0 ? one : other).takePending(key: "state") }
            }
            return try await group.reduce(into: [Secret]()) { if let secret = $1 { $0.append(secret) } }
        }
        #expect(taken == [Secret("verifier")] || taken.isEmpty == false && taken.count == 1)
        for index in 0..<20 {
            try await one.putPending(Secret("x"), key: "\(index)", life: .seconds(60))
            #expect(try await other.takePending(key: "\(index)") == Secret("x"))
        }
        let places = try await database.server.sql(
            "SELECT count(*) FROM heimdallr.pending WHERE space = '\(database.space)'")
        #expect((Int(places.dropLast()) ?? 0) <= 3, "places are used again")
        let text = try await database.server.sql(
            "SELECT encode(sealed, 'escape'), encode(key, 'escape') FROM heimdallr.pending")
        #expect(!text.contains("verifier") && !text.contains("state"))
    }
}
