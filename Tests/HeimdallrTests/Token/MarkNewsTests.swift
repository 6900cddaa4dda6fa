import SharedStore
import Synchronization
import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `News of a mark` {
    /// One row that another owner has marked. Counts the marks that are asked for.
    private final class Row: SharedRecordEngine {
        private struct State {
            var revision: UInt64 = 1
            var asked = 0
            var streams: [AsyncStream<Void>.Continuation] = []
        }

        private let state = Mutex(State())

        var asked: Int { state.withLock { $0.asked } }

        func read(client: String) async throws -> SharedRow { row }

        func mark(client: String, revision: UInt64?, owner: String, for time: Duration) async throws -> SharedRow {
            state.withLock { $0.asked += 1 }
            return row
        }

        func unmark(client: String, owner: String) async throws {}

        func swap(client: String, revision: UInt64, for record: TokenRecord?) async throws -> UInt64? { nil }

        func changes(client: String) -> AsyncStream<Void>? {
            AsyncStream { stream in state.withLock { $0.streams.append(stream) } }
        }

        /// The other owner saves, and all watchers hear it.
        func save() {
            let streams = state.withLock { state in
                state.revision += 1
                return state.streams
            }
            for stream in streams { stream.yield() }
        }

        private var row: SharedRow {
            let revision = state.withLock { $0.revision }
            return SharedRow(
                revision: revision, record: .success(nil), mark: revision == 1 ? .others(for: .seconds(60)) : .none)
        }
    }

    @Test func `a process that finds a mark looks again when there is news, and not before`() async throws {
        let row = Row()
        // Time stands still: only news wakes a waiting process.
        let store = MarkedTokenStore(
            row, leaseTime: .seconds(30), patience: .seconds(30), process: "this", clock: ManualClock().clock)
        async let lease = store.lease(client: "billing", unlessLaterThan: 1)
        try await eventually("it has looked") { row.asked >= 1 }
        row.save()
        #expect(try await lease != nil)
        #expect(row.asked == 2)
    }
}
