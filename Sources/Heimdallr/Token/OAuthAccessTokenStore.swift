import Synchronization

/// Keeps records, each under the `RecordName` of its client. Called on any thread; one call at a time for each client. A
/// token is used after its record was saved, or after `HeimdallrStatus.storeFault` names the fault.
public protocol OAuthAccessTokenStore: Sendable {
    /// The client's record; `nil`: there is none.
    /// - Throws: `TokenStoreError` when there is one that can't be read. It must stay as it is then.
    func load(client: String) async throws -> TokenRecord?

    /// Replaces the record whole, durably, and never an unreadable one.
    /// - Throws: `TokenStoreError` when it was not written. The client goes on from memory and tries again.
    func save(_ record: TokenRecord, client: String) async throws

    /// Removes the client's record, if there is one.
    /// - Throws: `TokenStoreError` when it is still there.
    func remove(client: String) async throws

    /// Excludes other processes during load, token request and save. `nil`, the default: no other process can use this store.
    /// - Throws: `TokenStoreError`, of the kind `.busy` when another process holds the lease too long.
    func lease(client: String) async throws -> (any TokenStoreLease)?

    /// Names of all records of one client that have a token, whatever server. Empty, the default: unknown.
    /// - Parameter client: `Heimdallr.name`.
    func names(of client: String) async throws -> [String]

    /// Takes a lease, unless the store has a later record than `revision`: the lease may then be one that is not held, and the
    /// next `load` has the record. The default always takes a lease.
    /// - Throws: as `lease(client:)`
    func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)?

    /// Returns a stream with an element for each possible change by another process. `nil`, the default: no notifications.
    func changes(client: String) -> AsyncStream<Void>?
}

extension OAuthAccessTokenStore {
    /// `nil`: no other process can use this store.
    public func lease(client: String) async throws -> (any TokenStoreLease)? { nil }

    /// Empty: the store does not know.
    public func names(of client: String) async throws -> [String] { [] }

    /// Takes a lease in any case.
    public func lease(
        client: String, unlessLaterThan revision: UInt64
    ) async throws -> (any TokenStoreLease)? { try await lease(client: client) }

    /// `nil`: no notifications.
    public func changes(client: String) -> AsyncStream<Void>? { nil }
}

/// The right to work with one client's record, which no other process has at the same time.
public protocol TokenStoreLease: Sendable {
    /// Whether it is still held, checked before a one-time credential is sent.
    func isHeld() async -> Bool

    /// Gives the lease back. Called once.
    func release() async
}

extension TokenStoreLease {
    /// This lease can't be lost.
    public func isHeld() async -> Bool { true }
}

/// Why a record can't be read or written. The text says what to do and never holds what the record holds.
public struct TokenStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The client's reaction to the fault.
    public enum Kind: Sendable, Hashable {
        /// The store can't do it now. The client goes on from memory, and tries again.
        case fault
        /// The record is unreadable with this key or version, and stays. The client goes on as if there were none.
        case unreadable
        /// Another process has the lease. The client sends nothing, for its refresh token may have been used already.
        case busy
        /// The store can't work until an operator changes something. A program should not start then.
        case misconfigured
        /// The store is unreachable. The token in use serves, and no one-time credential is sent.
        case unreachable
        /// Another process has saved a later record, and that one stays. The client takes it up.
        case superseded
    }

    /// The fault and the remedy, for an operator.
    public var description: String
    /// The client's reaction to it.
    public var kind: Kind
    /// The remedy, if it is known; the description ends with it.
    package var advice: String?

    /// - Parameter description: says what to do; never what the record holds.
    public init(_ description: String, kind: Kind = .fault) {
        self.description = description
        self.kind = kind
    }

    package init(_ fault: String, advice: String, kind: Kind) {
        self.init("\(fault): \(advice)", kind: kind)
        self.advice = advice
    }

    /// The description without the advice.
    package var fault: String { advice.map { String(description.dropLast($0.count + 2)) } ?? description }
}

/// Keeps records in memory: they are gone when the process ends. Safe on any thread.
public final class OAuthAccessTokenMemoryStore: OAuthAccessTokenStore {
    private let records = Mutex<[String: TokenRecord]>([:])

    /// An empty store.
    public init() {}

    public func load(client: String) -> TokenRecord? { records.withLock { $0[client] } }

    public func save(_ record: TokenRecord, client: String) { records.withLock { $0[client] = record } }

    public func remove(client: String) { records.withLock { $0[client] = nil } }

    public func names(of client: String) -> [String] {
        records.withLock { records in records.keys.filter { RecordName.client(of: $0) == client } }
    }
}
