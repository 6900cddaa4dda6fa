import Synchronization

/// One client's view of the store. While a new client of the same name replaces it, each has its own view.
package final class ClientStore: OAuthAccessTokenStore {
    private enum Phase {
        /// The former client still uses the record. Callers wait.
        case held([CheckedContinuation<Void, Never>])
        case open
        /// The record belongs to another client now.
        case retired
    }

    private let store: any OAuthAccessTokenStore
    private let mayFetch: Bool
    private let phase: Mutex<Phase>

    /// - Parameters:
    ///   - isHeld: nothing is read or written until `open` is called.
    ///   - mayFetch: whether the client may fetch further tokens after it is retired. It may not with a refresh token,
    ///     which then belongs to another client.
    package init(_ store: any OAuthAccessTokenStore, isHeld: Bool, mayFetch: Bool) {
        self.store = store
        self.mayFetch = mayFetch
        phase = Mutex(isHeld ? .held([]) : .open)
    }

    package func open() {
        let waiting = phase.withLock { phase -> [CheckedContinuation<Void, Never>] in
            guard case .held(let waiting) = phase else { return [] }
            phase = .open
            return waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Remaining users of the client use the tokens in its memory. Nothing is saved any more.
    package func retire() {
        open()
        phase.withLock { $0 = .retired }
    }

    package func load(client: String) async throws -> TokenRecord? {
        await wait() ? try await store.load(client: client) : nil
    }

    package func save(_ record: TokenRecord, client: String) async throws {
        if await wait() { try await store.save(record, client: client) }
    }

    package func remove(client: String) async throws {
        if await wait() { try await store.remove(client: client) }
    }

    package func lease(client: String) async throws -> (any TokenStoreLease)? {
        if await wait() { return try await store.lease(client: client) }
        guard mayFetch else { throw TokenStoreError("the client's settings have changed", kind: .busy) }
        return nil
    }

    package func names(of client: String) async throws -> [String] {
        await wait() ? try await store.names(of: client) : []
    }

    package func changes(client: String) -> AsyncStream<Void>? { store.changes(client: client) }

    /// - Returns: `false` when the record belongs to another client now.
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
