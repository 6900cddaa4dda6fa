import Synchronization

/// Access of a `Heimdallr` object to its store. A reload may hand the record to a new object: one at a time owns it.
package final class ClientStore: OAuthAccessTokenStore {
    private enum Phase {
        /// The previous object still owns the record. Calls wait.
        case held([CheckedContinuation<Void, Never>])
        case open
        /// Another object owns the record now. Calls throw.
        case retired
    }

    private let store: any OAuthAccessTokenStore
    private let phase: Mutex<Phase>

    /// - Parameter isHeld: whether all calls wait until `open` is called.
    package init(_ store: any OAuthAccessTokenStore, isHeld: Bool) {
        self.store = store
        phase = Mutex(isHeld ? .held([]) : .open)
    }

    package func open() { change(to: .open) }

    /// Makes all further calls throw. Call this after `Heimdallr.handOver(within:)`.
    package func retire() { change(to: .retired) }

    private func change(to next: Phase) {
        let waiting = phase.withLock { phase -> [CheckedContinuation<Void, Never>] in
            defer { if case .retired = phase {} else { phase = next } }
            if case .held(let waiting) = phase { return waiting }
            return []
        }
        for continuation in waiting { continuation.resume() }
    }

    package func load(client: String) async throws -> TokenRecord? { try await opened().load(client: client) }

    package func save(_ record: TokenRecord, client: String) async throws {
        try await opened().save(record, client: client)
    }

    package func remove(client: String) async throws { try await opened().remove(client: client) }

    package func lease(client: String) async throws -> (any TokenStoreLease)? {
        try await opened().lease(client: client).map { Lease(store: self, lease: $0) }
    }

    package func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)? {
        try await opened().lease(client: client, unlessLaterThan: revision).map { Lease(store: self, lease: $0) }
    }

    package func names(of client: String) async throws -> [String] { try await opened().names(of: client) }

    package func changes(client: String) -> AsyncStream<Void>? { store.changes(client: client) }

    /// Waits until this object owns the record.
    /// - Throws: `TokenStoreError` of the kind `.busy` if another object owns the record now.
    private func opened() async throws -> any OAuthAccessTokenStore {
        await withCheckedContinuation { continuation in
            let goesOn = phase.withLock { phase in
                guard case .held(let waiting) = phase else { return true }
                phase = .held(waiting + [continuation])
                return false
            }
            if goesOn { continuation.resume() }
        }
        if isRetired { throw TokenStoreError("the client's settings have changed", kind: .busy) }
        return store
    }

    package var isRetired: Bool { phase.withLock { if case .retired = $0 { true } else { false } } }

    /// A lease that is lost when this store is retired.
    private struct Lease: TokenStoreLease {
        let store: ClientStore
        let lease: any TokenStoreLease

        func isHeld() async -> Bool {
            guard !store.isRetired else { return false }
            return await lease.isHeld()
        }

        func release() async { await lease.release() }
    }
}
