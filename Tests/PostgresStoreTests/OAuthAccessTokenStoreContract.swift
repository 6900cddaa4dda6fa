import Heimdallr
import PostgresStore
import Synchronization
import TestSupport
import Testing

/// A kind of store. Each kind in `all` has to pass the contract.
struct StoreKind: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Makes empty storage. Each call of the result opens a store on it, as another process would.
    let storage: @Sendable () async throws -> @Sendable () async throws -> any OAuthAccessTokenStore

    static let all = [memory, file, postgres]

    static let memory = StoreKind(testDescription: "memory") {
        let store = OAuthAccessTokenMemoryStore()
        return { store }
    }

    /// They outlive the stores.
    private static let folders = Mutex<[TemporaryDirectory]>([])

    static let file = StoreKind(testDescription: "file") {
        let folder = try TemporaryDirectory()
        folders.withLock { $0.append(folder) }
        return {
            OAuthAccessTokenFileStore(
                directory: folder.path(of: "state"), key: try Postgres.key(1), lockPatience: Postgres.patience)
        }
    }

    static let postgres = StoreKind(testDescription: "PostgreSQL") {
        let database = try await Postgres()
        // A lease counts for half of its time, which the waits for it and a busy machine use up.
        return { try await database.store { $0.leaseTime = .seconds(300) } }
    }
}

/// The contract of every token store.
@Suite struct `The contract of token stores` {
    private static let full = TokenRecord(
        revision: 3, accessToken: Secret(String(repeating: "t", count: 16 * 1024)), issuedAt: now(),
        expiresAt: now() + 3600, refreshToken: Secret("r=+/ \u{e9}"), scope: ["a", "b c", ""],
        extra: ["n": .number("1e5"), "list": .array([.string("x"), .null, .bool(true)]), "": .object([:])],
        signIn: SignIn(idToken: Secret("id"), name: "ad\u{e9}"),
        refreshTokenLife: .init(issuedAt: now(), expiresAt: now() + 86_400), dpopKey: Secret("key"),
        keyThumbprint: "thumb")

    @Test("all records of one client are named, and no other's", arguments: StoreKind.all)
    func names(kind: StoreKind) async throws {
        let make = try await kind.storage()
        let (one, other) = ("bill.ing-0123456789abcdef", "bill.ing-fedcba9876543210")
        for name in [one, other, "bill.ing", "bill.ing-x-0123456789abcdef"] {
            try await make().save(Self.full, client: name)
        }
        #expect(try await Set(make().names(of: "bill.ing")) == [one, other])
        try await make().remove(client: other)
        #expect(try await make().names(of: "bill.ing") == [one])
        #expect(try await make().names(of: "nobody") == [])
    }

    @Test("a saved record comes back whole, and its times within two seconds", arguments: StoreKind.all)
    func roundTrip(kind: StoreKind) async throws {
        let make = try await kind.storage()
        try await make().save(Self.full, client: "billing")
        var loaded = try #require(try await make().load(client: "billing"))
        #expect((-2...0).contains(loaded.expiresAt - Self.full.expiresAt))
        #expect((-2...2).contains(loaded.issuedAt - Self.full.issuedAt))
        let life = try #require(loaded.refreshTokenLife)
        #expect(abs(life.expiresAt - (Self.full.refreshTokenLife?.expiresAt ?? 0)) <= 2)
        loaded.issuedAt = Self.full.issuedAt
        loaded.expiresAt = Self.full.expiresAt
        loaded.refreshTokenLife = Self.full.refreshTokenLife
        #expect(loaded == Self.full)
        #expect(try await make().load(client: "nobody") == nil)
    }

    @Test("an access token that has ended is not given back as one that has not", arguments: StoreKind.all)
    func ended(kind: StoreKind) async throws {
        let store = try await kind.storage()()
        try await store.save(record(1, "R", age: 100, life: 100), client: "billing")
        let loaded = try #require(try await store.load(client: "billing"))
        #expect(loaded.accessToken == nil || loaded.expiresAt <= now())
        #expect(loaded.refreshToken == Secret("R"))
    }

    @Test("clients don't share, whatever they are called", arguments: StoreKind.all)
    func apart(kind: StoreKind) async throws {
        let store = try await kind.storage()()
        let names = ["a", "A", "a'b\"", "../a", "a,b", "{a}", "\\", "\u{1F600}", "a\nb"]
        for name in names { try await store.save(record(1, "R \(name)"), client: name) }
        try await store.remove(client: "a")
        for name in names.dropFirst() {
            #expect(try await store.load(client: name)?.refreshToken == Secret("R \(name)"))
        }
    }

    @Test("a removed record is gone for everybody, again too, and makes room", arguments: StoreKind.all)
    func removal(kind: StoreKind) async throws {
        let make = try await kind.storage()
        let (one, other) = (try await make(), try await make())
        try await one.save(record(5, "R5"), client: "billing")
        for _ in 0..<2 {
            try await other.remove(client: "billing")
            let left = try await one.load(client: "billing")
            #expect(left?.accessToken == nil && left?.refreshToken == nil && left?.signIn == nil)
        }
        let revision = try await one.load(client: "billing")?.revision ?? 0
        try await other.save(record(revision + 1, "again"), client: "billing")
        #expect(try await one.load(client: "billing")?.refreshToken == Secret("again"))
    }

    @Test(
        "under a lease the record that is saved wins, whatever its number, and numbers grow", arguments: StoreKind.all)
    func underLease(kind: StoreKind) async throws {
        let store = try await kind.storage()()
        try await store.save(record(8, "R8"), client: "billing")
        guard let lease = try await store.lease(client: "billing") else { return }
        #expect(try await store.load(client: "billing")?.revision == 8)
        try await store.save(record(1, "R"), client: "billing")
        try await store.save(record(2, "again, under the same"), client: "billing")
        await lease.release()
        let stored = try await store.load(client: "billing")
        #expect(stored?.refreshToken == Secret("again, under the same"))
        #expect(stored?.revision ?? 0 > 8)
    }

    @Test("a lease keeps others out until it is released, or let go of", arguments: StoreKind.all)
    func leases(kind: StoreKind) async throws {
        let make = try await kind.storage()
        let (one, other) = (try await make(), try await make())
        guard var lease = try await one.lease(client: "billing") else { return }
        await #expect("another's lease") { _ = try await other.lease(client: "billing") } throws: { isBusy($0) }
        await #expect("another's save") { try await other.save(record(1, "R"), client: "billing") } throws: {
            isBusy($0)
        }
        // Reading needs none, and other clients are others.
        #expect(try await other.load(client: "billing")?.refreshToken == nil)
        try await other.save(record(1, "R"), client: "other")
        try await one.save(record(1, "first"), client: "billing")
        await lease.release()
        // A busy machine takes longer for a mark's end than the wait for a lease; a mark whose answer came too late ends by
        // its own time, 30 s.
        lease = try await eventually("the released lease is free", within: .seconds(90)) {
            try? await other.lease(client: "billing")
        }
        #expect(try await other.load(client: "billing")?.refreshToken == Secret("first"))
        await lease.release()
        do {
            _ = try await eventually("it is free again", within: .seconds(90)) {
                try? await one.lease(client: "billing")
            }
        }
        // Its mark goes in a task of its own, which may take longer than the wait for a lease on a busy machine.
        let last = try await eventually("the dropped lease ends", within: .seconds(90)) {
            try? await other.lease(client: "billing")
        }
        await last.release()
    }

    @Test(
        "a caller that waits for a lease gets it in the end, and leaves when it is cancelled", arguments: StoreKind.all)
    func waiting(kind: StoreKind) async throws {
        let make = try await kind.storage()
        let (one, other) = (try await make(), try await make())
        guard let lease = try await one.lease(client: "billing") else { return }
        let waiter = Task { try await other.lease(client: "billing") }
        let leaver = Task { try await other.lease(client: "billing") }
        // Time itself: both wait by then.
        try await Task.sleep(for: .milliseconds(50))
        leaver.cancel()
        await #expect(throws: CancellationError.self) { try await leaver.value }
        await lease.release()
        await (try await waiter.value)?.release()
    }

    @Test(
        "the late try of an earlier record does not replace what another process has stored since",
        arguments: StoreKind.all)
    func superseded(kind: StoreKind) async throws {
        let make = try await kind.storage()
        let (one, other) = (try await make(), try await make())
        guard let lease = try await one.lease(client: "billing") else { return }
        try await one.save(record(5, "R5"), client: "billing")
        await lease.release()
        let another = try await other.lease(client: "billing")
        try await other.save(record(8, "R8"), client: "billing")
        await another?.release()
        do {
            try await one.save(record(6, "R6", age: 10), client: "billing")
        } catch let error as TokenStoreError { #expect(error.kind == .superseded) }
        #expect(try await one.load(client: "billing")?.refreshToken == Secret("R8"))
    }

    @Test("many at once on one client: each turn sees the turn before", arguments: StoreKind.all)
    func turns(kind: StoreKind) async throws {
        let make = try await kind.storage()
        guard let lease = try await make().lease(client: "count") else { return }
        await lease.release()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                let store = try await make()
                group.addTask {
                    for _ in 0..<3 {
                        let lease = try await leasePatiently(store)
                        let before = try await store.load(client: "count")
                        let number = Int(before?.refreshToken?.revealed ?? "0") ?? -100
                        try await store.save(
                            record((before?.revision ?? 0) + 1, "\(number + 1)"), client: "count")
                        await lease?.release()
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await make().load(client: "count")?.refreshToken == Secret("12"))
    }

    /// On a busy machine the others' turns may take longer than a store waits.
    private func leasePatiently(_ store: any OAuthAccessTokenStore) async throws -> (any TokenStoreLease)? {
        while true {
            do { return try await store.lease(client: "count") } catch  where isBusy(error) { continue }
        }
    }

    private func isBusy(_ error: any Error) -> Bool { (error as? TokenStoreError)?.kind == .busy }
}

/// Seconds since 1970.
func now() -> Int64 { HeimdallrClock.system.wallClock() }

func record(_ revision: UInt64, _ refreshToken: String?, age: Int64 = 0, life: Int64 = 3600) -> TokenRecord {
    TokenRecord(
        revision: revision, accessToken: Secret("T\(revision)"), issuedAt: now() - age, expiresAt: now() - age + life,
        refreshToken: refreshToken.map { Secret($0) })
}
