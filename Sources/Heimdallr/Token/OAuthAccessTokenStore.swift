import Synchronization

/// Stores records, each under the `RecordName` of its client. Called on any thread, with one call at a time for each
/// client. A token is used only after its record was saved, or after `HeimdallrStatus.storeFault` names the fault.
public protocol OAuthAccessTokenStore: Sendable {
    /// Returns the client's record; `nil`: there is none.
    /// - Throws: `TokenStoreError` if the record can't be read. The store must then leave the record unchanged.
    func load(client: String) async throws -> TokenRecord?

    /// Replaces the whole record durably. Must never replace an unreadable record.
    /// - Throws: `TokenStoreError` if the record was not written. The client then uses it from memory and tries again.
    func save(_ record: TokenRecord, client: String) async throws

    /// Removes the client's record, if there is one.
    /// - Throws: `TokenStoreError` if the record was not removed.
    func remove(client: String) async throws

    /// Excludes other processes during load, token request and save. By default `nil`: only one process uses the store.
    /// - Throws: `TokenStoreError`, of the kind `.busy` if another process holds the lease for too long.
    func lease(client: String) async throws -> (any TokenStoreLease)?

    /// Returns the names of one client's records, for any server. May omit records without tokens. Empty by default.
    /// - Parameter client: `Heimdallr.name`.
    func names(of client: String) async throws -> [String]

    /// Takes a lease, unless the store has a record later than `revision`. In that case the store may return a lease
    /// that is not held, and the next `load` returns the later record. The default always takes a lease.
    /// - Throws: the errors of `lease(client:)`
    func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)?

    /// Returns a stream with an element for each possible change by another process; by default `nil`: no stream.
    func changes(client: String) -> AsyncStream<Void>?
}

extension OAuthAccessTokenStore {
    /// Returns `nil`: no other process can use this store.
    public func lease(client: String) async throws -> (any TokenStoreLease)? { nil }

    /// Returns an empty list, because the names are unknown.
    public func names(of client: String) async throws -> [String] { [] }

    /// Takes a lease in any case.
    public func lease(
        client: String, unlessLaterThan revision: UInt64
    ) async throws -> (any TokenStoreLease)? { try await lease(client: client) }

    /// Returns `nil`: the store reports no changes.
    public func changes(client: String) -> AsyncStream<Void>? { nil }
}

/// The exclusive right of one process to use a client's record.
public protocol TokenStoreLease: Sendable {
    /// Whether the lease is still held. The client checks this before it sends a one-time credential.
    func isHeld() async -> Bool

    /// Releases the lease. Called once.
    func release() async
}

extension TokenStoreLease {
    /// Returns true, for leases that can't be lost.
    public func isHeld() async -> Bool { true }
}

/// Reason why a record can't be read or written. The text says what to do, and never contains the record's data.
public struct TokenStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The client's reaction to the fault.
    public enum Kind: Sendable, Hashable {
        /// The operation failed for now. The client goes on from memory, and tries again.
        case fault
        /// The record is unreadable with this key or version. It stays, and the client goes on without a record.
        case unreadable
        /// Another process or object owns the record, and may have used the refresh token. The client sends nothing.
        case busy
        /// The store can't work until an operator changes something. A program should not start then.
        case misconfigured
        /// The store is unreachable. The client uses its current token, and sends no one-time credential.
        case unreachable
        /// Another process has saved a later record, which stays. The client uses that record.
        case superseded
    }

    /// The fault and the remedy, for an operator.
    public var description: String
    /// Kind of the fault, which decides the client's reaction.
    public var kind: Kind
    /// The remedy, if it is known. The description ends with this text.
    package var advice: String?
    /// Whether the store has the record nevertheless, though a power cut could still cost it.
    package var hasRecord = false

    /// The description says the fault and what to do, without the record's data.
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

/// Stores records in memory only, until the process ends. Safe on any thread.
public final class OAuthAccessTokenMemoryStore: OAuthAccessTokenStore {
    /// Records by client, then by name: each of thousands of clients looks for its former records when it starts.
    private let records = Mutex<[String?: [String: TokenRecord]]>([:])

    /// An empty store.
    public init() {}

    public func load(client: String) -> TokenRecord? {
        records.withLock { $0[RecordName.client(of: client)]?[client] }
    }

    public func save(_ record: TokenRecord, client: String) {
        records.withLock { $0[RecordName.client(of: client), default: [:]][client] = record }
    }

    public func remove(client: String) { records.withLock { $0[RecordName.client(of: client)]?[client] = nil } }

    public func names(of client: String) -> [String] { records.withLock { Array($0[client, default: [:]].keys) } }
}
