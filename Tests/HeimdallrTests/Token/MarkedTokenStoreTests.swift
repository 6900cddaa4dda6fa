import Heimdallr
import SharedStore
import Synchronization
import Testing

/// Leases as marks in rows that processes share.
@Suite struct `Marks in a shared store` {
    @Test func `a process with an unsaved record does not wait for its own mark`() async throws {
        let rows = Rows()
        let store = store(rows, "one")
        try await keepUnsaved(store, rows)
        let lease = try #require(try await store.lease(client: "billing"))
        #expect(await lease.isHeld())
        await lease.release()
        #expect(rows.state.withLock { $0.mark } != nil, "the mark protects the unsaved record")
        try await store.save(record(2), client: "billing")
        #expect(rows.state.withLock { $0.mark } == nil)
    }

    @Test func `a cancelled wait does not forget a mark whose answer was lost`() async throws {
        let rows = Rows()
        let store = store(rows, "one")
        rows.state.withLock { $0.losesAnswers = true }
        await #expect(throws: TokenStoreError.self) { _ = try await store.lease(client: "billing") }
        rows.state.withLock { $0.losesAnswers = false }
        let waiting = Task {
            while !Task.isCancelled { await Task.yield() }
            await #expect(throws: CancellationError.self) { _ = try await store.lease(client: "billing") }
        }
        waiting.cancel()
        await waiting.value
        let lease = try #require(try await store.lease(client: "billing"))
        #expect(await lease.isHeld())
        await lease.release()
    }

    @Test func `another process waits for the mark of an unsaved record`() async throws {
        let rows = Rows()
        let (one, other) = (store(rows, "one"), store(rows, "other"))
        try await keepUnsaved(one, rows)
        await #expect(throws: TokenStoreError.self) { _ = try await other.lease(client: "billing") }
        try await one.save(record(2), client: "billing")
        #expect(try await other.load(client: "billing")?.revision == 2)
    }

    private func store(_ rows: Rows, _ name: String) -> MarkedTokenStore {
        MarkedTokenStore(rows, leaseTime: .seconds(300), patience: .seconds(30), process: name, clock: rows.clock)
    }

    private func keepUnsaved(_ store: MarkedTokenStore, _ rows: Rows) async throws {
        let lease = try #require(try await store.lease(client: "billing"))
        rows.state.withLock { $0.isAway = true }
        await #expect(throws: TokenStoreError.self) { try await store.save(record(2), client: "billing") }
        await lease.release()
        rows.state.withLock { $0.isAway = false }
    }

    private func record(_ revision: UInt64) -> TokenRecord {
        TokenRecord(revision: revision, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: Secret("R2"))
    }
}

/// One row in memory. A sleep by its clock takes no time.
private final class Rows: SharedRecordEngine {
    struct State {
        var now = ContinuousClock.now
        var revision: UInt64 = 1
        var record: TokenRecord?
        var mark: (owner: String, until: ContinuousClock.Instant)?
        var isAway = false
        var losesAnswers = false
    }

    let state = Mutex(State())

    var clock: HeimdallrClock {
        HeimdallrClock(
            now: { self.state.withLock { $0.now } }, wallClock: { 0 },
            sleep: { instant in
                try Task.checkCancellation()
                self.state.withLock { $0.now = max($0.now, instant) }
            },
            random: { Double.random(in: 0..<1) })
    }

    func read(client: String) throws -> SharedRow { try change { Self.row($0, for: "") } }

    func mark(client: String, revision: UInt64?, owner: String, for time: Duration) throws -> SharedRow {
        try change { state in
            let found = Self.row(state, for: owner).mark
            if found == .none || found == .ours { state.mark = (owner, state.now + time) }
            return Self.row(state, for: owner)
        }
    }

    func unmark(client: String, owner: String) throws {
        try change { if $0.mark?.owner == owner { $0.mark = nil } }
    }

    func swap(client: String, revision: UInt64, for record: TokenRecord?) throws -> UInt64? {
        try change { state in
            guard state.revision == revision else { return nil }
            state.revision += 1
            state.record = record
            state.mark = nil
            return state.revision
        }
    }

    func changes(client: String) -> AsyncStream<Void>? { nil }

    private static func row(_ state: State, for owner: String) -> SharedRow {
        var mark = SharedRow.Mark.none
        if let standing = state.mark, state.now < standing.until {
            mark = standing.owner == owner ? .ours : .others(for: state.now.duration(to: standing.until))
        }
        return SharedRow(revision: state.revision, record: .success(state.record), mark: mark)
    }

    private func change<Value>(_ body: (inout State) -> Value) throws -> Value {
        try state.withLock { state in
            let away = TokenStoreError("the rows can't be reached", kind: .unreachable)
            if state.isAway { throw away }
            let value = body(&state)
            if state.losesAnswers { throw away }
            return value
        }
    }
}
