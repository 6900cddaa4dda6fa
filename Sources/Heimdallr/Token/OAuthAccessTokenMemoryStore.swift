import Synchronization

/// Keeps records in memory: they are gone when the process ends. Safe on any thread.
public final class OAuthAccessTokenMemoryStore: OAuthAccessTokenStore {
    private let records = Mutex<[String: TokenRecord]>([:])

    /// An empty store.
    public init() {}

    public func load(client: String) -> TokenRecord? {
        records.withLock { $0[client] }
    }

    public func save(_ record: TokenRecord, client: String) {
        records.withLock { $0[client] = record }
    }

    public func remove(client: String) {
        records.withLock { $0[client] = nil }
    }

    public func names(of client: String) -> [String] {
        records.withLock { records in records.keys.filter { RecordName.client(of: $0) == client } }
    }
}
