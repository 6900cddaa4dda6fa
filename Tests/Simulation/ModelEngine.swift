import Heimdallr
import SharedStore

/// The database's rows as one process reaches them: the contract of `SharedRecordEngine`, with all that a network does.
struct ModelEngine: SharedRecordEngine {
    let database: Database
    let process: Process

    /// How long a mark that ended while the database was away stands on.
    static let grace = Duration.seconds(5)

    func read(client: String) async throws -> SharedRow {
        try await perform { rows in shared(rows[client] ?? Database.Row(), "", at: database.world.now) }
    }

    func mark(client: String, revision: UInt64?, owner: String, for time: Duration) async throws -> SharedRow {
        try await perform { rows in
            if !process.isMover, let place = database.newLocation {
                throw MovedStore.late("the database", movedTo: place)
            }
            let now = database.world.now
            var row = rows[client] ?? Database.Row()
            let found = shared(row, owner, at: now)
            if row.revision == revision ?? row.revision, found.mark == .none || found.mark == .ours {
                row.mark = (owner, process, now + time)
                rows[client] = row
            }
            return shared(row, owner, at: now)
        }
    }

    func unmark(client: String, owner: String) async throws {
        let isGone = try await perform { rows in
            guard rows[client]?.mark?.owner == owner else { return false }
            rows[client]?.mark = nil
            return true
        }
        if isGone { database.changed(client, by: process) }
    }

    func swap(client: String, revision: UInt64, for record: TokenRecord?) async throws -> UInt64? {
        let written = try await perform { rows -> UInt64? in
            let row = rows[client] ?? Database.Row()
            guard row.revision == revision else { return nil }
            let next = max(revision + 1, record?.revision ?? 0)
            var record = record
            record?.revision = next
            rows[client] = Database.Row(revision: next, record: record)
            database.world.wrote(record, over: row.record, by: process)
            database.changed(client, by: process)
            return next
        }
        return written
    }

    func changes(client: String) -> AsyncStream<Void>? { database.changes(client: client, process) }

    func names(of client: String) async throws -> [String] {
        try await perform { rows in
            rows.filter { $0.value.record != nil && RecordName.client(of: $0.key) == client }.keys.sorted()
        }
    }

    func newLocation() async throws -> String? { try await perform { _ in database.newLocation } }

    func setNewLocation(_ location: String?) async throws { try await perform { _ in database.newLocation = location } }

    private func shared(_ row: Database.Row, _ owner: String, at now: ContinuousClock.Instant) -> SharedRow {
        var mark = SharedRow.Mark.none
        if let standing = row.mark {
            let end = max(standing.until, database.backAt.map { $0 + Self.grace } ?? standing.until)
            if standing.owner == owner {
                mark = .ours
            } else if now < end {
                mark = .others(for: now.duration(to: end))
            }
        }
        let empty = TokenRecord(
            revision: row.revision, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: nil)
        var record = row.record ?? (row.revision > 0 ? empty : nil)
        // As a store does that reckons by its own clock, and keeps more than whole seconds.
        record?.moments?.isFromStore = true
        if let moments = record?.moments {
            let wall = process.clock.wallClock()
            record?.issuedAt = wall - moments.issuedAt.duration(to: now).components.seconds - 1
            record?.expiresAt = wall + now.duration(to: moments.expiresAt).components.seconds
            if moments.expiresAt <= now { record?.accessToken = nil }
        }
        return SharedRow(revision: row.revision, record: .success(record), mark: mark)
    }

    private func perform<Value>(_ work: (inout [String: Database.Row]) throws -> Value) async throws -> Value {
        do { return try await database.perform(by: process, work) } catch is Database.Lost {
            throw TokenStoreError("the database can't be reached", kind: .unreachable)
        }
    }
}

/// The same for sign-ins that begin at one process and end at another.
struct ModelPendingLogins: PendingLoginStore {
    let database: Database
    let process: Process

    func putPending(_ content: Secret, key: String, life: Duration) async throws {
        do { try await database.putPending(content, key, life, by: process) } catch is Database.Lost { throw Self.away }
    }

    func takePending(key: String) async throws -> Secret? {
        do { return try await database.takePending(key, by: process) } catch is Database.Lost { throw Self.away }
    }

    private static let away = TokenStoreError("the database can't be reached", kind: .unreachable)
}
