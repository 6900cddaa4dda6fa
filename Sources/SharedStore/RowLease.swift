import Heimdallr
import Synchronization

/// A lease of one client: this process's mark in the client's row. A lease without a mark only reports a later record.
final class RowLease: TokenStoreLease {
    private struct State {
        var isOpen = true
        var isRead = false
        var revision: UInt64
        /// Latest time at which a token request may begin; `nil` for a lease without a mark.
        var until: ContinuousClock.Instant?
    }

    let client: String
    let owner: String
    let row: SharedRow
    let isMarked: Bool
    private let store: MarkedTokenStore
    private let state: Mutex<State>

    init(
        _ store: MarkedTokenStore, _ client: String, _ owner: String, _ row: SharedRow,
        until: ContinuousClock.Instant?
    ) {
        self.store = store
        self.client = client
        self.owner = owner
        self.row = row
        isMarked = until != nil
        state = Mutex(State(revision: row.revision, until: until))
    }

    deinit { if isMarked, isOpen, !hasWritten { store.abandon(client, owner) } }

    /// Whether a save has removed the mark.
    var hasWritten: Bool { state.withLock { $0.revision != row.revision } }
    var isOpen: Bool { state.withLock { $0.isOpen } }
    var revision: UInt64 { state.withLock { $0.revision } }

    /// Returns the row as read with the mark, to the first caller only. Later callers get `nil` and read the row again.
    func firstReading() -> SharedRow? {
        state.withLock { state in
            guard state.isOpen, !state.isRead else { return nil }
            state.isRead = true
            return row
        }
    }

    func wrote(_ revision: UInt64) { state.withLock { $0.revision = revision } }

    /// Returns whether a token request may begin. Renews a mark that became too old while the request waited.
    func isHeld() async -> Bool {
        guard let until = state.withLock({ $0.isOpen ? $0.until : nil }) else { return false }
        if store.clock.now() < until { return true }
        guard let renewed = await store.renew(self) else { return false }
        state.withLock { $0.until = renewed }
        return true
    }

    func release() async {
        let wasOpen = state.withLock { state in
            defer { state.isOpen = false }
            return state.isOpen
        }
        if wasOpen { await store.end(self) }
    }
}
