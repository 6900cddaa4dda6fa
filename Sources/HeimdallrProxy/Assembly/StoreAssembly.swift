import Configuration
import Heimdallr
import Logging
import Synchronization

/// Makes the token store out of its settings.
struct StoreAssembly {
    let settings: StoreSettings
    let secrets: SecretShelf
    let logger: Logger

    /// - Throws: `TokenStoreError` when it can't work until somebody changes something. A disk that only happens to be in
    ///   trouble is no reason not to start: tokens are kept in memory meanwhile.
    func make() async throws(TokenStoreError) -> any OAuthAccessTokenStore {
        guard case .file(let directory, let source) = settings else { return OAuthAccessTokenMemoryStore() }
        let store = OAuthAccessTokenFileStore(directory: directory, key: try await key(from: source))
        do {
            try await store.prepare()
        } catch let error as TokenStoreError where error.kind == .misconfigured {
            throw error
        } catch {
            logger.warning("the token store is out of order", metadata: ["reason": "\(error)"])
        }
        return LoggedTokenStore(store, logger: logger)
    }

    private func key(from source: SecretSource) async throws(TokenStoreError) -> TokenStoreKey {
        switch source {
        case .literal(let text): return try TokenStoreKey(Secret(text))
        case .file(let path): return try TokenStoreKey(file: path)
        case .environment(let name):
            guard let value = ProcessEnvironment.value(of: name) else {
                throw TokenStoreError("the environment variable \(name) is not set", kind: .misconfigured)
            }
            return try TokenStoreKey(Secret(value))
        case .command:
            let key: Secret
            do { key = try await secrets.secret(source).secret() } catch {
                throw TokenStoreError("store.key: \(error)", kind: .misconfigured)
            }
            return try TokenStoreKey(key)
        }
    }
}

/// Says in the log when a client's record can't be read or written any more, and when it can again; not each time.
private final class LoggedTokenStore: OAuthAccessTokenStore {
    private let store: OAuthAccessTokenFileStore
    private let logger: Logger
    private let faults = Mutex<[String: String]>([:])

    init(_ store: OAuthAccessTokenFileStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    func load(client: String) async throws -> TokenRecord? {
        try await watch(client) { try await store.load(client: client) }
    }

    func save(_ record: TokenRecord, client: String) async throws {
        try await watch(client) { try await store.save(record, client: client) }
    }

    func remove(client: String) async throws {
        try await watch(client) { try await store.remove(client: client) }
    }

    /// Not watched: what is wrong shows when the record is saved.
    func lease(client: String) async throws -> (any TokenStoreLease)? { try await store.lease(client: client) }

    func changes(client: String) -> AsyncStream<Void>? { store.changes(client: client) }

    private func watch<Value>(_ client: String, _ work: () async throws -> Value) async throws -> Value {
        do {
            let value = try await work()
            if faults.withLock({ $0.removeValue(forKey: client) }) != nil {
                logger.info("the token store works again", metadata: ["client": "\(client)"])
            }
            return value
        } catch {
            let reason = "\(error)"
            if faults.withLock({ $0.updateValue(reason, forKey: client) }) != reason {
                logger.warning(
                    "the token store is out of order; tokens are kept in memory",
                    metadata: ["client": "\(client)", "reason": "\(reason)"])
            }
            throw error
        }
    }
}
