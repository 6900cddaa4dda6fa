import Heimdallr

/// A store whose lease is a transaction that holds the row's lock, as `OAuthAccessTokenPostgresStore` has it.
final class RowLockStore: OAuthAccessTokenStore, @unchecked Sendable {
    private let database: Database
    private let process: Process
    private var leases: [String: Lease] = [:]
    private var bases: [String: UInt64] = [:]

    init(_ database: Database, _ process: Process) {
        self.database = database
        self.process = process
    }

    private static let away = TokenStoreError("the database can't be reached", kind: .unreachable)
    private static let superseded = TokenStoreError("another process has stored a later record", kind: .superseded)

    func load(client: String) async throws -> TokenRecord? {
        do {
            return try await database.perform(on: Database.Connection(process)) { rows in
                rows[client].flatMap { row in row.record ?? (row.revision > 0 ? Self.empty(row.revision) : nil) }
            }
        } catch is Database.Lost {
            throw Self.away
        }
    }

    private static func empty(_ revision: UInt64) -> TokenRecord {
        TokenRecord(revision: revision, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: nil)
    }

    func lease(client: String) async throws -> (any TokenStoreLease)? {
        let lease = try await hold(client, isLate: false)
        leases[client] = lease
        bases[client] = lease.base
        return lease
    }

    private func hold(_ client: String, isLate: Bool) async throws -> Lease {
        let deadline = database.world.now + .seconds(30)
        var pause = Duration.milliseconds(isLate ? 10 : 20)
        while true {
            let connection = Database.Connection(process)
            do {
                let base = try await database.perform(on: connection) { rows -> UInt64? in
                    guard rows[client]?.lock == nil else { return nil }
                    rows[client, default: Database.Row()].lock = connection
                    return rows[client]?.revision
                }
                if let base {
                    let end = (database.backAt ?? .now - .seconds(3600)) + database.world.plan.graceAfterRestart
                    guard isLate || database.world.now >= end else {
                        database.release(connection)
                        try await process.sleep(until: end)
                        continue
                    }
                    return Lease(database, connection, base)
                }
            } catch is Database.Lost {
                database.release(connection)
                throw Self.away
            }
            guard database.world.now < deadline else { throw TokenStoreError("another has it", kind: .busy) }
            try await process.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(250))
        }
    }

    func save(_ record: TokenRecord, client: String) async throws { try await put(record, client) }

    func remove(client: String) async throws { try await put(nil, client) }

    private func put(_ record: TokenRecord?, _ client: String) async throws {
        if let lease = leases[client], lease.connection.isOpen, !lease.hasEnded {
            lease.hasEnded = true
            do {
                bases[client] = try await write(record, client, lease.connection, lease.base)
                return
            } catch is Database.Lost {
                database.release(lease.connection)
            }
        }
        let end = database.world.now + .seconds(5)
        while true {
            do {
                let lease = try await hold(client, isLate: true)
                defer { database.release(lease.connection) }
                if let there = database.row(client)?.record, there.refreshToken == record?.refreshToken { return }
                guard record == nil || lease.base <= bases[client] ?? (record?.revision ?? 1) - 1 else {
                    throw Self.superseded
                }
                bases[client] = try await write(record, client, lease.connection, lease.base)
                return
            } catch let error as TokenStoreError where error.kind == .unreachable && database.world.now < end {
                try await process.sleep(for: .milliseconds(50))
            } catch is Database.Lost {
                throw Self.away
            }
        }
    }

    private func write(
        _ record: TokenRecord?, _ client: String, _ connection: Database.Connection, _ base: UInt64
    ) async throws -> UInt64 {
        let revision = max(base + 1, record?.revision ?? 0)
        var record = record
        record?.revision = revision
        try await database.perform(on: connection) { rows in
            rows[client] = Database.Row(revision: revision, record: record)
            database.wrote(record, client, over: base, revision)
        }
        database.changed(client, by: process)
        return revision
    }

    func changes(client: String) -> AsyncStream<Void>? { database.changes(client: client, process) }

    private final class Lease: TokenStoreLease, @unchecked Sendable {
        let database: Database
        let connection: Database.Connection
        let base: UInt64
        var hasEnded = false

        init(_ database: Database, _ connection: Database.Connection, _ base: UInt64) {
            self.database = database
            self.connection = connection
            self.base = base
        }

        func isHeld() async -> Bool {
            (try? await database.perform(on: connection) { _ in true }) ?? false
        }

        func release() async {
            hasEnded = true
            database.release(connection)
        }
    }
}
