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
        /// Renews the mark after each change that the engine reports.
        var keeper: Task<Void, Never>?
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

    deinit {
        state.withLock { $0.keeper }?.cancel()
        if isMarked, isOpen, !hasWritten { store.abandon(client, owner) }
    }

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
        return await renew() ?? false
    }

    /// Marks the row again at each change that the engine reports: the connection is new, and the server may be another
    /// one without this mark.
    func keep(_ changes: AsyncStream<Void>?) {
        guard let changes else { return }
        let keeper = Task.detached { [weak self] in
            for await _ in changes {
                guard let self, isOpen, !hasWritten else { return }
                await renew()
            }
        }
        state.withLock { $0.keeper = keeper }
    }

    /// - Returns: whether the mark stands; `nil` if the engine could not be reached.
    @discardableResult
    private func renew() async -> Bool? {
        let asked = store.clock.now()
        guard let isMarked = try? await store.renew(self) else { return nil }
        state.withLock { state in
            if state.until != nil { state.until = isMarked ? asked + store.leaseTime / 2 : nil }
        }
        return isMarked
    }

    func release() async {
        let (wasOpen, keeper) = state.withLock { state in
            defer { state.isOpen = false }
            return (state.isOpen, state.keeper)
        }
        keeper?.cancel()
        if wasOpen { await store.end(self) }
    }
}
