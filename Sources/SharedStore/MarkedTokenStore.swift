import Heimdallr
import Synchronization

/// A token store that any number of processes share, over a `SharedRecordEngine`.
///
/// A lease is a committed mark in the client's row, so it survives a lost connection. A save is a compare-and-swap on
/// the revision that the lease read. A save can use any connection, and can be repeated. Safe on any thread.
package final class MarkedTokenStore: OAuthAccessTokenStore {
    package typealias Instant = ContinuousClock.Instant

    struct ClientState {
        /// The newest record that this process has read or written.
        var newest: NewestRecord?
        weak var lease: RowLease?
        /// Revision that the next save replaces.
        var base: UInt64?
        /// Owner of a mark that may remain after a lost answer or an unsaved record. The next lease uses this owner.
        var remainingOwner: String?
        /// Whether a record is unsaved. The mark then remains, so that no process uses the replaced refresh token.
        var hasUnsavedRecord = false
    }

    let engine: any SharedRecordEngine
    let leaseTime: Duration
    private let patience: Duration
    let clock: HeimdallrClock
    /// Name of this process. The owner in each mark is this name and a random number.
    private let process: String
    let clients = Mutex<[String: ClientState]>([:])

    /// Time in which `save` repeats attempts that do not reach the database.
    private static let saveRetryTime = Duration.seconds(5)
    /// Longest wait between two reads of a row with another owner's mark, because notifications may be lost.
    private static let longestPause = Duration.seconds(2)
    /// Shortest wait for another owner's mark, which may outlast its stated time.
    private static let shortestPause = Duration.milliseconds(500)

    /// - Parameters:
    ///   - leaseTime: lifetime of a mark: twice the longest token request and a margin.
    ///   - patience: longest wait for another process's mark.
    ///   - process: name of this process in its marks.
    package init(
        _ engine: any SharedRecordEngine, leaseTime: Duration, patience: Duration, process: String,
        clock: HeimdallrClock
    ) {
        self.engine = engine
        self.leaseTime = leaseTime
        self.patience = patience
        self.clock = clock
        // A space ends an owner in the row.
        self.process = String(process.map { $0.isWhitespace ? "-" : $0 })
    }

    // MARK: Reading

    package func load(client: String) async throws -> TokenRecord? {
        if let row = clients.withLock({ $0[client]?.lease })?.firstReading() { return try row.record.get() }
        return try await read(client).record.get()
    }

    package func changes(client: String) -> AsyncStream<Void>? { engine.changes(client: client) }

    // MARK: Leases

    package func lease(client: String) async throws -> (any TokenStoreLease)? { try await lease(client, knowing: nil) }

    package func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)? {
        try await lease(client, knowing: revision)
    }

    private func lease(_ client: String, knowing known: UInt64?) async throws -> RowLease {
        let owner = takeOwner(client)
        let lease: RowLease
        do { lease = try await self.lease(client, owner, knowing: known) } catch {
            keepOwner(owner, of: client)
            throw error
        }
        guard lease.isMarked, Task.isCancelled else { return lease }
        // The owner is not used again, because the removal of its mark may be carried out late.
        await lease.release()
        throw CancellationError()
    }

    private func lease(_ client: String, _ owner: String, knowing known: UInt64?) async throws -> RowLease {
        let deadline = clock.now() + patience
        var known = known
        while true {
            try Task.checkCancellation()
            // The stream begins before the row is read, so that no change is missed. Each wait ends its stream.
            let changes = engine.changes(client: client)
            var left = Self.longestPause
            if clients.withLock({ $0[client]?.lease?.isOpen ?? false }) == false {
                let asked = clock.now()
                let row = try await engine.mark(client: client, revision: known, owner: owner, for: leaseTime)
                guard try await isNewest(row, client, asked) else { continue }
                switch row.mark {
                case .ours:
                    let lease = RowLease(self, client, owner, row, until: asked + leaseTime / 2)
                    take(lease)
                    lease.keep(changes)
                    return lease
                case .others, .none:
                    if let revision = known, row.revision > revision {
                        let lease = RowLease(self, client, owner, row, until: nil)
                        take(lease)
                        return lease
                    }
                    if row.mark == .none {
                        known = nil
                        continue
                    }
                    if case .others(let time) = row.mark { left = max(time, Self.shortestPause) }
                }
            }
            guard clock.now() < deadline else {
                throw TokenStoreError(
                    "another process has held the lease of \(RecordName.owner(of: client)) in the token store for more than \(patience): "
                        + "`heimdallr-proxy store status` shows its host", kind: .busy)
            }
            // Jitter between waiting processes.
            let pause = min(left, Self.longestPause) + .milliseconds(Int64(clock.random() * 50))
            await waitForChange(changes, until: min(deadline, clock.now() + pause))
        }
    }

    private func takeOwner(_ client: String) -> String {
        let remaining = clients.withLock { clients in
            defer { clients[client]?.remainingOwner = nil }
            return clients[client]?.remainingOwner
        }
        return remaining ?? "\(process):\(String(UInt64(clock.random() * 0x1p53), radix: 16))"
    }

    private func keepOwner(_ owner: String, of client: String) {
        clients.withLock { $0[client, default: ClientState()].remainingOwner = owner }
    }

    private func take(_ lease: RowLease) {
        clients.withLock { clients in
            clients[lease.client, default: ClientState()].lease = lease
            // A new revision by another process makes the unsaved record obsolete.
            if clients[lease.client]?.base != lease.revision { clients[lease.client]?.hasUnsavedRecord = false }
            if lease.isMarked { clients[lease.client]?.base = lease.revision }
        }
    }

    private func waitForChange(_ changes: AsyncStream<Void>?, until instant: Instant) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [clock] in try? await clock.sleep(instant) }
            if let changes { group.addTask { for await _ in changes { return } } }
            await group.next()
            group.cancelAll()
        }
    }

    /// Ends a lease. Also removes its mark, unless a save has removed the mark, or a record is unsaved.
    func end(_ lease: RowLease) async {
        let hasUnsavedRecord = clients.withLock { clients in
            if clients[lease.client]?.lease === lease { clients[lease.client]?.lease = nil }
            return clients[lease.client]?.hasUnsavedRecord ?? false
        }
        guard lease.isMarked, !lease.hasWritten else { return }
        guard !hasUnsavedRecord else { return keepOwner(lease.owner, of: lease.client) }
        // Not cancelled with the caller, because other processes wait for the removal.
        await Task.detached { [self] in await unmark(lease.client, lease.owner) }.value
    }

    private func unmark(_ client: String, _ owner: String) async {
        for _ in 0..<3 {
            do { return try await engine.unmark(client: client, owner: owner) } catch {
                try? await clock.sleep(clock.now() + .milliseconds(100))
            }
        }
    }

    /// Renews the mark, unless another process has marked or written the row.
    /// - Returns: whether the row is marked.
    func renew(_ lease: RowLease) async throws -> Bool {
        // The server may be another one, whose row is older.
        _ = try await read(lease.client)
        return try await engine.renew(
            client: lease.client, revision: lease.row.revision, owner: lease.owner, for: leaseTime
        ).mark == .ours
    }

    /// Does the same as `end(_:)` for a lease that was dropped without `release()`, but does not wait.
    func abandon(_ client: String, _ owner: String) {
        guard clients.withLock({ $0[client]?.hasUnsavedRecord != true }) else { return keepOwner(owner, of: client) }
        Task.detached { [self] in await unmark(client, owner) }
    }

    // MARK: Writing

    package func save(_ record: TokenRecord, client: String) async throws { try await put(record, client) }

    package func remove(client: String) async throws { try await put(nil, client) }

    private func put(_ record: TokenRecord?, _ client: String) async throws {
        let lease = clients.withLock { $0[client]?.lease }
        if record != nil, case .failure(let fault)? = lease?.row.record { throw fault }
        do {
            let revision = try await swap(record, client, lease)
            note(revision, record, client)
            lease?.wrote(revision)
            clients.withLock { clients in
                clients[client, default: ClientState()].base = revision
                clients[client]?.hasUnsavedRecord = false
            }
        } catch {
            let kind = (error as? TokenStoreError)?.kind
            clients.withLock { clients in
                if kind == .superseded { clients[client]?.hasUnsavedRecord = false }
                let isProtected = record != nil && lease?.isMarked == true
                if kind == .unreachable, isProtected { clients[client]?.hasUnsavedRecord = true }
            }
            throw error
        }
    }

    private func swap(_ record: TokenRecord?, _ client: String, _ lease: RowLease?) async throws -> UInt64 {
        let end = clock.now() + (lease == nil ? .zero : Self.saveRetryTime)
        var base = clients.withLock { $0[client]?.base }
        // While the mark is valid, no other process changes the row.
        var isBaseCurrent = record != nil && lease?.isMarked == true
        while true {
            do {
                if isBaseCurrent, let base,
                    let revision = try await engine.swap(client: client, revision: base, for: record)
                {
                    return revision
                }
                // The row may hold another process's record, or ours if the answer to an earlier swap was lost.
                let row = try await read(client)
                if row.holds(record) { return row.revision }
                if let record {
                    _ = try row.record.get()
                    if base == nil, case .others = row.mark {
                        throw TokenStoreError(
                            "another process is saving a record of \(RecordName.owner(of: client))", kind: .busy)
                    }
                    guard row.revision <= base ?? record.revision - min(record.revision, 1) else {
                        throw TokenStoreError(
                            "another process has stored a later record of \(RecordName.owner(of: client)): this one was not saved",
                            kind: .superseded)
                    }
                }
                base = row.revision
                isBaseCurrent = true
            } catch let error as TokenStoreError where error.kind == .unreachable && clock.now() < end {
                try? await clock.sleep(clock.now() + .milliseconds(30 + Int64(clock.random() * 50)))
            }
        }
    }
}

extension SharedRow {
    /// Whether the row already holds `wanted`, or no tokens if `wanted` is `nil`.
    fileprivate func holds(_ wanted: TokenRecord?) -> Bool {
        guard case .success(let stored) = record else { return false }
        guard let wanted else { return stored.map { $0.accessToken == nil && $0.refreshToken == nil } ?? true }
        guard let stored else { return false }
        // A read leaves out an expired access token. Without an access token, the refresh token decides.
        return stored.refreshToken == wanted.refreshToken && stored.signIn == wanted.signIn
            && stored.scope == wanted.scope && stored.dpopKey == wanted.dpopKey
            && (stored.accessToken == nil || stored.accessToken == wanted.accessToken)
            && (wanted.refreshToken != nil || stored.accessToken == wanted.accessToken)
    }
}
