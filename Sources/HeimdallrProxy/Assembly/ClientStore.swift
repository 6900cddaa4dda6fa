import Heimdallr
import Synchronization

/// The store as one client sees it, while another of the same name may take its place: each has its own.
final class ClientStore: OAuthAccessTokenStore {
    private enum Phase {
        /// The one before is still at it: who asks waits.
        case held([CheckedContinuation<Void, Never>])
        case open
        /// Another one has the record now.
        case retired
    }

    private let store: any OAuthAccessTokenStore
    private let mayFetch: Bool
    private let phase: Mutex<Phase>

    /// - Parameters:
    ///   - isHeld: until `open` is called, nothing is read or written.
    ///   - mayFetch: whether it may get further tokens once it is retired: not with a refresh token that is another's now.
    init(_ store: any OAuthAccessTokenStore, isHeld: Bool, mayFetch: Bool) {
        self.store = store
        self.mayFetch = mayFetch
        phase = Mutex(isHeld ? .held([]) : .open)
    }

    func open() {
        let waiting = phase.withLock { phase -> [CheckedContinuation<Void, Never>] in
            guard case .held(let waiting) = phase else { return [] }
            phase = .open
            return waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Whoever still uses the client has what is in its memory, and nothing of it is kept.
    func retire() {
        open()
        phase.withLock { $0 = .retired }
    }

    func load(client: String) async throws -> TokenRecord? {
        await wait() ? try await store.load(client: client) : nil
    }

    func save(_ record: TokenRecord, client: String) async throws {
        if await wait() { try await store.save(record, client: client) }
    }

    func remove(client: String) async throws {
        if await wait() { try await store.remove(client: client) }
    }

    func lease(client: String) async throws -> (any TokenStoreLease)? {
        if await wait() { return try await store.lease(client: client) }
        guard mayFetch else { throw TokenStoreError("the client's settings have changed", kind: .busy) }
        return nil
    }

    func names(of client: String) async throws -> [String] {
        await wait() ? try await store.names(of: client) : []
    }

    func changes(client: String) -> AsyncStream<Void>? { store.changes(client: client) }

    /// - Returns: `false`: it is not ours any more.
    private func wait() async -> Bool {
        await withCheckedContinuation { continuation in
            let goesOn = phase.withLock { phase in
                guard case .held(let waiting) = phase else { return true }
                phase = .held(waiting + [continuation])
                return false
            }
            if goesOn { continuation.resume() }
        }
        return phase.withLock { if case .retired = $0 { false } else { true } }
    }
}
