import Heimdallr
import Synchronization

/// A store that several clients of one name share, as processes on several machines would: leases, news, and what a network
/// does to them.
final class SharedMemoryStore: OAuthAccessTokenStore {
    struct State {
        var records: [String: TokenRecord] = [:]
        var holders: [String: Int] = [:]
        var nextLease = 1
        var isAway = false
        var isUnreadable = false
        var watchers: [(client: String, stream: AsyncStream<Void>.Continuation)] = []
        var loads = 0
    }

    let state = Mutex(State())
    /// Whether a lease is waited for, as stores on disks and in databases do.
    let waits: Bool

    init(waits: Bool = false) { self.waits = waits }

    static let away = TokenStoreError("the store can't be reached", kind: .unreachable)

    var isAway: Bool {
        get { state.withLock { $0.isAway } }
        set {
            state.withLock { $0.isAway = newValue }
            guard !newValue else { return }
            for client in Set(state.withLock({ $0.watchers.map(\.client) })) { tell(client) }
        }
    }

    /// A key is missing, say.
    var isUnreadable: Bool {
        get { state.withLock { $0.isUnreadable } }
        set { state.withLock { $0.isUnreadable = newValue } }
    }

    /// Number of records read so far.
    var loads: Int { state.withLock { $0.loads } }

    func record(_ client: String = "billing") -> TokenRecord? { state.withLock { $0.records[client] } }

    /// Saves a record as another process.
    func put(_ record: TokenRecord?, _ client: String = "billing", tells: Bool = true) {
        state.withLock { $0.records[client] = record }
        if tells { tell(client) }
    }

    /// Takes the lease from its holder.
    func takeLease(_ client: String = "billing") { state.withLock { $0.holders[client] = nil } }

    /// Tests find records by the client's name alone.
    private static func key(_ name: String) -> String { RecordName.client(of: name) ?? name }

    func load(client: String) throws -> TokenRecord? {
        let client = Self.key(client)
        return try state.withLock { state in
            state.loads += 1
            if state.isAway { throw Self.away }
            if state.isUnreadable { throw TokenStoreError("sealed with a key that is not here", kind: .unreadable) }
            return state.records[client]
        }
    }

    func save(_ record: TokenRecord, client: String) throws {
        let client = Self.key(client)
        try state.withLock { state in
            if state.isAway { throw Self.away }
            guard state.records[client].map({ $0.revision < record.revision }) ?? true else {
                throw TokenStoreError("another process has saved a later record", kind: .superseded)
            }
            state.records[client] = record
        }
        tell(client)
    }

    func remove(client: String) throws {
        let client = Self.key(client)
        try state.withLock { state in
            if state.isAway { throw Self.away }
            state.records[client] = nil
        }
        tell(client)
    }

    func lease(client: String) async throws -> (any TokenStoreLease)? {
        let client = Self.key(client)
        while true {
            let number = try state.withLock { state -> Int? in
                if state.isAway { throw Self.away }
                guard state.holders[client] == nil else { return nil }
                state.nextLease += 1
                state.holders[client] = state.nextLease
                return state.nextLease
            }
            if let number { return Lease(store: self, client: client, number: number) }
            guard waits else { throw TokenStoreError("another process has it", kind: .busy) }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    func changes(client: String) -> AsyncStream<Void>? {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        state.withLock { $0.watchers.append((Self.key(client), continuation)) }
        return stream
    }

    private func tell(_ client: String) {
        for watcher in state.withLock({ $0.watchers }) where watcher.client == client { watcher.stream.yield() }
    }

    private struct Lease: TokenStoreLease {
        let store: SharedMemoryStore
        let client: String
        let number: Int

        func isHeld() -> Bool { store.state.withLock { $0.holders[client] == number } }

        func release() {
            store.state.withLock { if $0.holders[client] == number { $0.holders[client] = nil } }
        }
    }
}
