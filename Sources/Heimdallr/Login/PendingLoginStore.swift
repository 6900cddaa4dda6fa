import Synchronization

/// Stores logins in progress, so that another process can finish them. Each can be taken once.
public protocol PendingLoginStore: Sendable {
    /// Stores `content` under `key`, an unguessable name, until it is taken or `life` has passed.
    /// - Throws: `TokenStoreError` if the content may not be stored.
    func putPending(_ content: Secret, key: String, life: Duration) async throws

    /// Removes and returns the content of `key`, for one caller only; `nil`: missing, taken or expired.
    /// - Throws: `TokenStoreError` if the store does not answer.
    func takePending(key: String) async throws -> Secret?
}

/// Stores pending logins in the memory of this process. Safe on any thread.
public final class PendingLoginMemoryStore: PendingLoginStore {
    private struct Entry {
        var content: Secret
        var end: ContinuousClock.Instant
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let clock: HeimdallrClock

    /// Largest number of stored logins. If it is reached, the login that expires first is removed.
    static let limit = 1024

    /// An empty store.
    public init(clock: HeimdallrClock = .system) { self.clock = clock }

    public func putPending(_ content: Secret, key: String, life: Duration) {
        let now = clock.now()
        entries.withLock { entries in
            if entries.count >= Self.limit {
                entries = entries.filter { $0.value.end > now }
                if entries.count >= Self.limit, let first = entries.min(by: { $0.value.end < $1.value.end }) {
                    entries[first.key] = nil
                }
            }
            entries[key] = Entry(content: content, end: now + life)
        }
    }

    public func takePending(key: String) -> Secret? {
        let now = clock.now()
        guard let entry = entries.withLock({ $0.removeValue(forKey: key) }), entry.end > now else { return nil }
        return entry.content
    }
}
