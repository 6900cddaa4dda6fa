import Heimdallr
import SharedStore

/// The store of one process, as the proxy and `store move` use it: the real file store, or the real `MarkedTokenStore`
/// over the model of a database.
struct SimulatedStore: MovableTokenStore {
    private let isInFiles: Bool
    private let engine: ModelEngine
    private let process: Process

    /// - Throws: once the process has ended.
    private var store: any OAuthAccessTokenStore {
        get throws {
            guard let store = process.stores[isInFiles] else { throw Process.Dead() }
            return store
        }
    }

    /// `nil`: the database.
    private var files: OAuthAccessTokenFileStore? { get throws { try store as? OAuthAccessTokenFileStore } }

    init(_ process: Process, isInFiles: Bool) {
        let world = process.world
        (self.process, self.isInFiles) = (process, isInFiles)
        engine = ModelEngine(database: world.database, process: process)
        process.stores[isInFiles] =
            isInFiles
            ? world.files.store(of: process)
            : MarkedTokenStore(
                engine, leaseTime: world.plan.leaseTime, patience: .seconds(30), process: "\(process)",
                clock: process.clock)
    }

    /// The check of a proxy at its start.
    func prepare() async throws {
        if let files = try files { return try await files.prepare() }
        if let location = try await engine.newLocation() { throw MovedStore.refusal(self.location, movedTo: location) }
    }

    // MARK: Records

    func load(client: String) async throws -> TokenRecord? { try await store.load(client: client) }

    func save(_ record: TokenRecord, client: String) async throws {
        try await store.save(record, client: client)
        if isInFiles { process.world.files.wrote(record, client, by: process) }
    }

    func remove(client: String) async throws {
        try await store.remove(client: client)
        if isInFiles { process.world.files.wrote(nil, client, by: process) }
    }

    func lease(client: String) async throws -> (any TokenStoreLease)? { try await store.lease(client: client) }

    func lease(client: String, unlessLaterThan revision: UInt64) async throws -> (any TokenStoreLease)? {
        try await store.lease(client: client, unlessLaterThan: revision)
    }

    func names(of client: String) async throws -> [String] {
        if let files = try files { try await files.names(of: client) } else { try await engine.names(of: client) }
    }

    func changes(client: String) -> AsyncStream<Void>? { (try? store)?.changes(client: client) }

    // MARK: Moves

    var location: String { isInFiles ? "the files" : "the database" }

    func prepareMove(alone: Bool) async throws {
        if let files = try files { return try await files.prepareMove(alone: alone) }
        if alone, process.world.isDatabaseInUse { throw MovedStore.inUse(location) }
    }

    func newLocation() async throws -> String? {
        if let files = try files { try await files.newLocation() } else { try await engine.newLocation() }
    }

    func setNewLocation(_ location: String?) async throws {
        if let files = try files {
            try await files.setNewLocation(location)
        } else {
            try await engine.setNewLocation(location)
        }
    }
}
