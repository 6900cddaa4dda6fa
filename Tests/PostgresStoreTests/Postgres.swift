import Foundation
import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

/// A separate space in the shared server, with its tables.
struct Postgres: Sendable {
    let server: PostgresServer
    let space = "space \(UInt32.random(in: .min ... .max))"

    /// Longer than the restraint after an outage, which may come of a busy machine.
    static let patience = Duration.seconds(4)

    private static let tables = Task {
        try await PostgresServer.shared().sql(PostgresSchema.sql(role: "limited"))
    }

    /// - Parameter server: `nil`: the shared one.
    init(_ server: PostgresServer? = nil) async throws {
        if let server {
            self.server = server
            try await server.sql(PostgresSchema.sql(role: "limited"))
        } else {
            self.server = try await PostgresServer.shared()
            _ = try await Self.tables.value
        }
    }

    static func key(_ byte: UInt8) throws -> TokenStoreKey {
        try TokenStoreKey(Secret([UInt8](repeating: byte, count: 32)))
    }

    func settings(_ connection: String? = nil, keys: [UInt8] = [1]) throws -> PostgresStoreSettings {
        var settings = PostgresStoreSettings(
            connection: Secret(connection ?? server.connection), space: space, keys: try keys.map(Self.key))
        settings.patience = Self.patience
        settings.leaseTime = .seconds(20)
        settings.youth = .zero
        return settings
    }

    /// As another process would have it.
    func store(
        _ connection: String? = nil, keys: [UInt8] = [1], clock: HeimdallrClock = .system,
        _ change: (inout PostgresStoreSettings) -> Void = { _ in }
    ) async throws -> OAuthAccessTokenPostgresStore {
        var settings = try settings(connection, keys: keys)
        change(&settings)
        let store = try OAuthAccessTokenPostgresStore(settings, clock: clock)
        try await store.prepare()
        return store
    }

    /// The row as `revision|bytes`.
    func row(_ client: String = "billing") async throws -> String {
        try await server.sql(
            "SELECT revision, length(sealed) FROM heimdallr.token WHERE space = '\(space)' AND client = '\(client)'")
    }

    func change(_ what: String, _ client: String = "billing") async throws {
        try await server.sql("UPDATE heimdallr.token SET \(what) WHERE space = '\(space)' AND client = '\(client)'")
    }

    /// Starts a process that saves one record.
    /// - Parameter wrapper: a command that runs the process.
    func contender(
        _ refreshToken: String, client: String = "billing", fault: String? = nil, under wrapper: [String] = [],
        environment: [String: String?] = [:]
    ) throws -> ChildProcess {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(
            "PostgresContender")
        let own = ["CONNECTION": server.connection, "FAULT": fault]
        return try ChildProcess(
            wrapper + [program.path, space, client, refreshToken],
            environment: own.merging(environment) { _, new in new })
    }
}

/// The error of a store that must fail.
func storeFault(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async -> TokenStoreError? {
    await #expect(throws: TokenStoreError.self, sourceLocation: sourceLocation) { try await body() }
}
