import Heimdallr
import Synchronization

/// A token store that any number of processes share, over a `SharedRecordEngine`.
///
/// A lease is a committed mark in the row, not a connection: connections may end, and the owner loses nothing. A save is a
/// compare-and-swap on the revision that its lease saw, from any connection, as often as it takes. Safe on any thread.
package final class MarkedTokenStore: OAuthAccessTokenStore {
    package typealias Instant = ContinuousClock.Instant

    private struct ClientState {
        weak var lease: MarkedLease?
        /// Revision that the next record replaces.
        var base: UInt64?
        /// Owner of a mark that may stand without a lease, after a lost answer or for an owed record. The next lease takes it.
        var standing: String?
        /// Whether a record is unsaved. Its mark stays: it keeps others from the refresh token that the record replaces.
        var isOwed = false
    }

    private let engine: any SharedRecordEngine
    private let leaseTime: Duration
    private let patience: Duration
    let clock: HeimdallrClock
    /// Name of this process. Each mark has this name and a random number.
    private let process: String
    private let clients = Mutex<[String: ClientState]>([:])

    /// Time in which a save is repeated at once.
    private static let insistence = Duration.seconds(5)
    /// A waiting client reads the row at least this often: notices may be lost.
    private static let longestPause = Duration.seconds(2)
    /// Shortest wait for another owner's mark, which may stand a moment longer.
    private static let shortestPause = Duration.milliseconds(500)

    /// - Parameters:
    ///   - leaseTime: life of a mark: twice the longest token request and a margin.
    ///   - patience: longest wait for another process's mark.
    ///   - owner: name of this process in the row.
    package init(
        _ engine: any SharedRecordEngine, leaseTime: Duration, patience: Duration, owner: String, clock: HeimdallrClock
    ) {
        self.engine = engine
        self.leaseTime = leaseTime
        self.patience = patience
        self.clock = clock
        process = owner
    }

    // MARK: Reading

    package func load(client: String) async throws -> TokenRecord? {
        if let row = clients.withLock({ $0[client]?.lease })?.firstReading() { return try row.record.get() }
        return try await engine.read(client: client).record.get()
    }

    package func changes(client: String) -> AsyncStream<Void>? { engine.changes(client: client) }

    // MARK: Leases

    package func lease(client: String) async throws -> (any TokenStoreLease)? { try await lease(client, knowing: nil) }

    package func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)? {
        try await lease(client, knowing: revision)
    }

    private func lease(_ client: String, knowing known: UInt64?) async throws -> MarkedLease {
        let owner = takeOwner(client)
        do { return try await lease(client, owner, knowing: known) } catch {
            stands(client, owner)
            throw error
        }
    }

    private func lease(_ client: String, _ owner: String, knowing known: UInt64?) async throws -> MarkedLease {
        let deadline = clock.now() + patience
        var known = known
        while true {
            try Task.checkCancellation()
            // Listens before it reads. Each read has a stream: a stream ends with the task that waited for it.
            let changes = engine.changes(client: client)
            var left = Self.longestPause
            if clients.withLock({ $0[client]?.lease?.isOpen ?? false }) == false {
                let asked = clock.now()
                let row = try await engine.mark(client: client, revision: known, owner: owner, for: leaseTime)
                switch row.mark {
                case .ours:
                    let lease = MarkedLease(self, client, owner, row, until: asked + leaseTime / 2)
                    take(lease)
                    guard !Task.isCancelled else {
                        await lease.release()
                        throw CancellationError()
                    }
                    return lease
                case .others, .none:
                    if let revision = known, row.revision > revision {
                        let lease = MarkedLease(self, client, owner, row, until: nil)
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
                    "another process holds the lease of \(client) in the token store for more than \(patience): "
                        + "`heimdallr-proxy store status` shows which", kind: .busy)
            }
            // Jitter between waiting processes.
            let pause = min(left, Self.longestPause) + .milliseconds(Int64(clock.random() * 50))
            await hear(changes, until: min(deadline, clock.now() + pause))
        }
    }

    private func takeOwner(_ client: String) -> String {
        let standing = clients.withLock { clients in
            defer { clients[client]?.standing = nil }
            return clients[client]?.standing
        }
        return standing ?? "\(process):\(String(UInt64(clock.random() * 0x1p53), radix: 16))"
    }

    private func stands(_ client: String, _ owner: String) {
        clients.withLock { $0[client, default: ClientState()].standing = owner }
    }

    private func take(_ lease: MarkedLease) {
        clients.withLock { clients in
            clients[lease.client, default: ClientState()].lease = lease
            // After another process has written, nothing is owed.
            if clients[lease.client]?.base != lease.revision { clients[lease.client]?.isOwed = false }
            if lease.isMarked { clients[lease.client]?.base = lease.revision }
        }
    }

    /// Waits for a change, at most until `instant`.
    private func hear(_ changes: AsyncStream<Void>?, until instant: Instant) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [clock] in try? await clock.sleep(instant) }
            if let changes { group.addTask { for await _ in changes { return } } }
            await group.next()
            group.cancelAll()
        }
    }

    /// Removes the mark, unless a record has to be saved under it.
    func end(_ lease: MarkedLease) async {
        let isOwed = clients.withLock { clients in
            if clients[lease.client]?.lease === lease { clients[lease.client]?.lease = nil }
            return clients[lease.client]?.isOwed ?? false
        }
        guard lease.isMarked, !lease.hasWritten else { return }
        guard !isOwed else { return stands(lease.client, lease.owner) }
        // Not cancelled with the caller: other processes wait for the mark.
        await Task.detached { [self] in await unmark(lease.client, lease.owner) }.value
    }

    private func unmark(_ client: String, _ owner: String) async {
        for _ in 0..<3 {
            do { return try await engine.unmark(client: client, owner: owner) } catch {
                try? await clock.sleep(clock.now() + .milliseconds(100))
            }
        }
    }

    /// Marks the row again, unless another process has the mark or has written.
    /// - Returns: the last time at which a request may begin; `nil`: the lease has ended.
    func renew(_ lease: MarkedLease) async -> Instant? {
        let asked = clock.now()
        let row = try? await engine.mark(
            client: lease.client, revision: lease.row.revision, owner: lease.owner, for: leaseTime)
        return row?.mark == .ours ? asked + leaseTime / 2 : nil
    }

    /// Ends a lease that was dropped without `release()`.
    func abandon(_ client: String, _ owner: String) {
        guard clients.withLock({ $0[client]?.isOwed != true }) else { return stands(client, owner) }
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
            lease?.wrote(revision)
            clients.withLock { clients in
                clients[client, default: ClientState()].base = revision
                clients[client]?.isOwed = false
            }
        } catch {
            let kind = (error as? TokenStoreError)?.kind
            clients.withLock { clients in
                if kind == .superseded { clients[client]?.isOwed = false }
                if kind == .unreachable, record != nil, lease?.isMarked == true { clients[client]?.isOwed = true }
            }
            throw error
        }
    }

    private func swap(_ record: TokenRecord?, _ client: String, _ lease: MarkedLease?) async throws -> UInt64 {
        let end = clock.now() + (lease == nil ? .zero : Self.insistence)
        var base = clients.withLock { $0[client]?.base }
        // Under a mark the row is as the mark found it.
        var isSure = record != nil && lease?.isMarked == true
        while true {
            do {
                if isSure, let base {
                    if let revision = try await engine.swap(client: client, revision: base, for: record) {
                        return revision
                    }
                }
                // The record is another process's, or ours after a lost answer.
                let row = try await engine.read(client: client)
                if row.holds(record) { return row.revision }
                if let record {
                    _ = try row.record.get()
                    if base == nil, case .others = row.mark {
                        throw TokenStoreError("another process is saving a record of \(client)", kind: .busy)
                    }
                    guard row.revision <= base ?? record.revision - min(record.revision, 1) else {
                        throw TokenStoreError(
                            "another process has stored a later record of \(client): this one was not saved",
                            kind: .superseded)
                    }
                }
                base = row.revision
                isSure = true
            } catch let error as TokenStoreError where error.kind == .unreachable && clock.now() < end {
                try? await clock.sleep(clock.now() + .milliseconds(30 + Int64(clock.random() * 50)))
            }
        }
    }
}

extension SharedRow {
    /// Whether the row holds the record that a process tried to write.
    fileprivate func holds(_ wanted: TokenRecord?) -> Bool {
        guard case .success(let there) = record else { return false }
        guard let wanted else { return there.map { $0.accessToken == nil && $0.refreshToken == nil } ?? true }
        guard let there else { return false }
        // A read leaves out an expired access token.
        return there.refreshToken == wanted.refreshToken && there.signIn == wanted.signIn
            && there.scope == wanted.scope && there.dpopKey == wanted.dpopKey
            && (there.accessToken == nil || there.accessToken == wanted.accessToken)
            && (wanted.refreshToken != nil || there.accessToken == wanted.accessToken)
    }
}
