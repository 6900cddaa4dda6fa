/// Keeps one record for each client, by the client's name.
///
/// The life cycle asks one thing at a time for one client: a lease, a load, a save. It uses an access token only after
/// its record was saved or the save has visibly failed.
public protocol OAuthAccessTokenStore: Sendable {
    /// `nil`: there is none.
    /// - Throws: a sentence (`TokenStoreError`) when there is one that can't be read; it must stay as it is.
    func load(client: String) async throws -> TokenRecord?

    /// Returns when the record would survive a power cut. Replaces the old record whole or not at all, and never one that
    /// it can't read.
    func save(_ record: TokenRecord, client: String) async throws

    /// Forgets the client.
    func remove(client: String) async throws

    /// Held across load, token request and save, so that two processes on one store never spend one refresh token
    /// twice. `nil`: nobody else can have this store open.
    /// - Throws: `TokenStoreError`, of the kind `.busy` when another process keeps it too long.
    func lease(client: String) async throws -> (any TokenStoreLease)?
}

extension OAuthAccessTokenStore {
    public func lease(client: String) async throws -> (any TokenStoreLease)? { nil }
}

public protocol TokenStoreLease: Sendable {
    func release() async
}

/// Why a record can't be read or written. The text says what to do and never holds what the record holds.
public struct TokenStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Kind: Sendable, Hashable {
        /// The store can't do it now. A client goes on from memory, and tries again.
        case fault
        /// There is a record, and this key or this version can't read it; it stays. A client goes on as if there were none.
        case unreadable
        /// Another process has the lease. Whoever went on without it could spend a refresh token that is spent already.
        case busy
        /// It can't work until somebody changes something: a reason not to start.
        case misconfigured
    }

    public var description: String
    public var kind: Kind

    public init(_ description: String, kind: Kind = .fault) {
        self.description = description
        self.kind = kind
    }
}
