import Administration
import Configuration
import Cryptography
import Heimdallr
import Logging
import PostgresStore
import Synchronization

/// Makes the token store from its settings.
struct StoreAssembly {
    let configuration: Configuration
    let secrets: SecretCache
    /// By default it logs nothing, for callers that report faults themselves.
    var logger = Logger(label: "store") { _ in SwiftLogNoOpLogHandler() }
    /// Whether the first use of a database waits until each of its servers was tried, as a command does.
    var waitsForAllServers = false

    struct Assembled {
        var tokens: any OAuthAccessTokenStore
        /// Logins under way; `nil` if they are not shared with other processes.
        var pendingLogins: (any PendingLoginStore)?
        /// Returns the fault of the database, if there is one.
        var fault: @Sendable () -> TokenStoreError? = { nil }
        /// Keys for placeholders, from those of the store; empty without a store that outlives the process.
        var placeholderKeys: [SecretBytes] = []
    }

    /// - Throws: `TokenStoreError` for a lasting fault. A disk or a database with a temporary fault does not prevent
    ///   the start: tokens are then kept in memory.
    func make() async throws(TokenStoreError) -> Assembled {
        switch configuration.store {
        case .memory: return Assembled(tokens: OAuthAccessTokenMemoryStore())
        case .file(let directory, let source):
            let store = try await fileStore(directory, source)
            try await prepare { try await store.prepare() }
            return Assembled(
                tokens: LoggedTokenStore(store, logger: logger), placeholderKeys: try await placeholderKeys([source]))
        case .postgres(let settings):
            let store = try await postgresStore(settings)
            try await prepare { try await store.prepare() }
            return Assembled(
                tokens: LoggedTokenStore(store, logger: logger), pendingLogins: store, fault: { store.fault },
                placeholderKeys: try await placeholderKeys(settings.keys, space: settings.space))
        }
    }

    /// Returns keys that proxies with the same store have in common. They can't reveal those of the store.
    private func placeholderKeys(
        _ sources: [SecretSource], space: String = ""
    ) async throws(TokenStoreError) -> [SecretBytes] {
        var keys: [SecretBytes] = []
        for source in sources {
            do { keys.append(try await key(from: source).derived(for: "placeholders \(space)")) } catch {
                throw TokenStoreError("the key of placeholders can't be made: \(error)", kind: .misconfigured)
            }
        }
        return keys
    }

    /// Finds faults that `make` would refuse or log, without creating a folder, connecting to a database or running a
    /// command.
    func check() async throws(TokenStoreError) {
        switch configuration.store {
        case .memory: break
        case .file(let directory, let source):
            if !source.isReadByProxy { _ = try await key(from: source) }
            try OAuthAccessTokenFileStore.check(directory: directory)
        case .postgres(let settings):
            if ([settings.connection] + settings.keys).contains(where: \.isReadByProxy) { return }
            _ = try await postgresStore(settings)
        }
    }

    private func prepare(_ prepare: () async throws -> Void) async throws(TokenStoreError) {
        do {
            try await prepare()
        } catch let error as TokenStoreError where error.kind == .misconfigured {
            throw error
        } catch { logger.warning("the token store can't be used", metadata: ["reason": "\(error)"]) }
    }

    func fileStore(_ directory: String, _ key: SecretSource) async throws(TokenStoreError) -> OAuthAccessTokenFileStore
    {
        OAuthAccessTokenFileStore(directory: directory, key: try await self.key(from: key))
    }

    /// Opens no connection yet, but loads libpq.
    func postgresStore(
        _ settings: PostgresSettings
    ) async throws(TokenStoreError) -> OAuthAccessTokenPostgresStore {
        var keys: [TokenStoreKey] = []
        for source in settings.keys { keys.append(try await key(from: source)) }
        var prepared = PostgresStoreSettings(
            connection: try await secret(settings.connection, "store.connection"), space: settings.space, keys: keys)
        prepared.connectionSource = connectionSource(settings.connection)
        prepared.waitsForAllServers = waitsForAllServers
        prepared.trustAnchorsFile = configuration.trustAnchorsFile
        // The lease covers two token requests: its holder may repeat a request at once if the answer is lost.
        let timeout = configuration.clients.map(\.timeout).max() ?? .zero
        prepared.leaseTime = max(.seconds(30), timeout * 2 + .seconds(10))
        return try OAuthAccessTokenPostgresStore(prepared)
    }

    /// Passwords of databases rotate: files are read for each connection, and commands run again after a refusal.
    private func connectionSource(_ source: SecretSource) -> PostgresStoreSettings.ConnectionSource? {
        switch source {
        case .literal, .environment: return nil
        case .file, .command, .remote:
            let secret = secrets.secret(source)
            return { wasRefused in
                if wasRefused { await secret.refresh() }
                return try await secret.secret()
            }
        }
    }

    private func key(from source: SecretSource) async throws(TokenStoreError) -> TokenStoreKey {
        if case .file(let path) = source { return try TokenStoreKey(file: path) }
        return try TokenStoreKey(try await secret(source, "store.key"))
    }

    func secret(_ source: SecretSource, _ name: String) async throws(TokenStoreError) -> Secret {
        switch source {
        case .literal(let text): return Secret(text)
        case .environment(let name):
            guard let value = ProcessEnvironment.value(of: name) else {
                throw TokenStoreError("the environment variable \(name) is not set", kind: .misconfigured)
            }
            return Secret(value)
        case .file, .command, .remote:
            do { return try await secrets.secret(source).secret() } catch {
                throw TokenStoreError("\(name): \(error)", kind: .misconfigured)
            }
        }
    }
}

/// Logs once for each new reason why records can't be read or written, and once after the recovery. A record that can be
/// read may still not be written, and one reason may concern many clients.
private final class LoggedTokenStore: OAuthAccessTokenStore {
    private let store: any OAuthAccessTokenStore
    private let logger: Logger
    private struct Fault {
        var reason: String
        var isLogged: Bool
    }

    private let faults = Mutex<[String: [String: Fault]]>([:])

    init(_ store: any OAuthAccessTokenStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    func load(client: String) async throws -> TokenRecord? {
        try await watch(client, "load") { try await store.load(client: client) }
    }

    func save(_ record: TokenRecord, client: String) async throws {
        try await watch(client, "save") { try await store.save(record, client: client) }
    }

    func remove(client: String) async throws {
        try await watch(client, "save") { try await store.remove(client: client) }
    }

    /// Logs nothing: a fault is logged when the record is saved.
    func lease(client: String) async throws -> (any TokenStoreLease)? { try await store.lease(client: client) }

    func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)? {
        try await store.lease(client: client, unlessLaterThan: revision)
    }

    func changes(client: String) -> AsyncStream<Void>? { store.changes(client: client) }

    /// Returns the client's other record names, and logs if there are any. Called if the current record is missing.
    func names(of client: String) async throws -> [String] {
        let names = try await store.names(of: client)
        if !names.isEmpty {
            logger.warning("\(Advice.foreignRecord)", metadata: ["client": "\(client)"])
        }
        return names
    }

    private static func name(_ record: String) -> Logger.Metadata {
        ["client": "\(RecordName.owner(of: record))"]
    }

    /// - Parameter record: name of the record (`RecordName`).
    private func watch<Value>(_ record: String, _ operation: String, _ work: () async throws -> Value) async throws
        -> Value
    {
        do {
            let value = try await work()
            let isRecovery = faults.withLock { faults in
                guard let former = faults[record]?.removeValue(forKey: operation) else { return false }
                guard faults[record]?.isEmpty ?? true else { return false }
                faults[record] = nil
                return former.isLogged
            }
            if isRecovery { logger.info("the token store works again", metadata: Self.name(record)) }
            return value
        } catch {
            let reason = "\(error)"
            let isNew = faults.withLock { faults in
                guard faults[record]?[operation]?.reason != reason else { return false }
                let isNew = !faults.values.contains { $0.values.contains { $0.reason == reason } }
                faults[record, default: [:]][operation] = Fault(reason: reason, isLogged: isNew)
                return isNew
            }
            if isNew {
                logger.warning(
                    "the token store can't be used; tokens are kept in memory",
                    metadata: Self.name(record).merging(["reason": "\(reason)"]) { $1 })
            }
            throw error
        }
    }
}
