import Synchronization

/// Forgets everything with the process.
public final class OAuthAccessTokenMemoryStore: OAuthAccessTokenStore {
    private let records = Mutex<[String: TokenRecord]>([:])

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
}
