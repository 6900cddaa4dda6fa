import Heimdallr
import Synchronization

/// A transaction that holds the lock on one client's row. Ends with the first write, with `release()`, or with its last
/// reference.
final class PostgresLease: TokenStoreLease {
    /// What it has its connection for.
    struct Held: Sendable {
        var worker: PostgresWorker
        var row: TokenRow
        var holder: PostgresHolder
        /// The row was given to a reader; the next wants a new look.
        var isRead = false
    }

    private let held: Mutex<Held?>
    private let pool: PostgresPool
    /// The revision that was there when it began, or that it has written.
    private let base: Mutex<UInt64>
    private let answerTime: Duration

    init(
        _ worker: PostgresWorker, _ row: TokenRow, _ holder: PostgresHolder, _ pool: PostgresPool, answerTime: Duration
    ) {
        self.answerTime = answerTime
        held = Mutex(Held(worker: worker, row: row, holder: holder))
        base = Mutex(row.revision)
        self.pool = pool
    }

    deinit { if let held = held.withLock({ $0 }) { pool.discard(held.worker) } }

    var revision: UInt64 { base.withLock { $0 } }

    /// What it read when it began, once.
    func firstReading() -> TokenRow? {
        held.withLock { held in
            guard held?.isRead == false else { return nil }
            held?.isRead = true
            return held?.row
        }
    }

    /// The connection and the row for whoever ends the lease by writing; nobody else has them then.
    func end() -> Held? {
        held.withLock { held in
            defer { held = nil }
            return held
        }
    }

    func wrote(_ revision: UInt64) { base.withLock { $0 = revision } }

    /// Asks the server: the transaction may be over, and nobody told us.
    func isHeld() async -> Bool {
        guard let held = held.withLock({ $0 }) else { return false }
        let limit = answerTime
        let answer = try? await held.worker.perform(within: limit) { link -> Bool in
            _ = try link.run("SELECT 1", by: .now + limit)
            return link.isInTransaction
        }
        return answer == true
    }

    func release() async {
        guard let held = end() else { return }
        do {
            try await held.worker.perform(within: .seconds(5)) { link in
                if link.isOpen { try link.run(script: "ROLLBACK", by: .now + .seconds(5)) }
            }
            pool.giveBack(held.worker)
        } catch {
            pool.discard(held.worker)
        }
    }
}
