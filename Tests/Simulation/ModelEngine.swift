import Heimdallr
import SharedStore

/// The database's rows as one process reaches them: the contract of `SharedRecordEngine`, with all that a network does.
struct ModelEngine: SharedRecordEngine {
    let database: Database
    let process: Process

    /// As `Statements.mark` and the store's settings have them.
    private static let takeoverTime = Duration.seconds(8)
    private static let longestGap = Duration.milliseconds(2500)
    private static let announcementInterval = Duration.milliseconds(500)

    func read(client: String) async throws -> SharedRow {
        try await perform { rows, now in
            var row = shared(rows[client] ?? Database.Row(), isOurs: false, at: now)
            if case .others(let time) = row.mark, time <= .zero { row.mark = .none }
            return row
        }
    }

    func mark(client: String, revision: UInt64?, owner: String, for time: Duration) async throws -> SharedRow {
        try await mark(client, revision, owner, time, isRenewal: false)
    }

    func renew(client: String, revision: UInt64, owner: String, for time: Duration) async throws -> SharedRow {
        try await mark(client, revision, owner, time, isRenewal: true)
    }

    private func mark(
        _ client: String, _ revision: UInt64?, _ owner: String, _ time: Duration, isRenewal: Bool
    ) async throws -> SharedRow {
        for _ in 0..<4 {
            let end = database.world.now + Outages.answerTime
            let found = try await perform(writes: client) { rows, now -> (row: SharedRow, again: Bool) in
                if !process.isMover, let place = database.newLocation {
                    throw MovedStore.late("the database", movedTo: place)
                }
                var row = rows[client] ?? Database.Row()
                let isWanted = row.revision == revision ?? row.revision && now <= end
                let step = isWanted ? step(row.mark, owner, isRenewal, at: now) : .wait
                switch step {
                case .mark: row.mark = Database.Mark(owner: owner, until: now + time)
                case .take: row.mark = Database.Mark(owner: owner, until: now + time, state: .taken(at: now))
                case .announce:
                    row.mark?.state = .contested(since: now)
                    row.mark?.until = now + Self.longestGap
                    database.changed(client, by: process)
                case .announceAgain: row.mark?.until = now + Self.longestGap
                case .seen, .wait: break
                }
                rows[client] = row
                var shown = shared(row, isOurs: step == .mark || step == .seen, at: now)
                // A free row of the wanted revision that is left alone for now.
                if step == .wait, isWanted, shown.mark == .none { shown.mark = .others(for: .zero) }
                return (shown, step == .take)
            }
            if !found.again { return found.row }
        }
        throw TokenStoreError("the row changes too often", kind: .unreachable)
    }

    private enum Step { case mark, seen, take, announce, announceAgain, wait }

    /// The rule of `Statements.mark`.
    private func step(
        _ mark: Database.Mark?, _ owner: String, _ isRenewal: Bool, at now: ContinuousClock.Instant
    ) -> Step {
        let back = [database.backAt, process.movedAt].compactMap { $0?.duration(to: now) }.min() ?? .seconds(100)
        guard let mark else { return back < .seconds(3) && !isRenewal ? .wait : .mark }
        let isOurs = mark.owner == owner
        var isTaken = false
        if case .taken(let at) = mark.state {
            isTaken = true
            if isOurs, !isRenewal, at.duration(to: now) <= Self.longestGap { return .seen }
        }
        if isOurs, !isTaken || isRenewal { return .mark }
        if isRenewal { return .wait }
        if back < .seconds(5) { return .wait }
        if World.isBroken { return mark.until <= now || isOurs ? .mark : .wait }
        if case .contested(let since) = mark.state, mark.until > now {
            if since.duration(to: now) >= Self.takeoverTime { return .take }
            return now.duration(to: mark.until) <= Self.longestGap - Self.announcementInterval ? .announceAgain : .wait
        }
        return isOurs || mark.until <= now ? .announce : .wait
    }

    func unmark(client: String, owner: String) async throws {
        let end = database.world.now + Outages.answerTime
        let isGone = try await perform(writes: client) { rows, now in
            guard rows[client]?.mark?.owner == owner, now <= end || World.isBroken else { return false }
            rows[client]?.mark = nil
            return true
        }
        if isGone { database.changed(client, by: process) }
    }

    func swap(client: String, revision: UInt64, for record: TokenRecord?) async throws -> UInt64? {
        let end = database.world.now + Outages.answerTime
        return try await perform(writes: client) { rows, now -> UInt64? in
            let row = rows[client] ?? Database.Row()
            guard row.revision == revision, now <= end || World.isBroken else { return nil }
            let next = max(revision + 1, record?.revision ?? 0)
            let made = record?.moments?.issuedAt ?? now
            var record = record.flatMap { $0.holdsAnything || $0.signIn != nil ? $0 : nil }
            record?.revision = next
            rows[client] = Database.Row(revision: next, record: record, madeAt: made)
            database.world.wrote(record, over: row.record, by: process)
            database.changed(client, by: process)
            return next
        }
    }

    func changes(client: String) -> AsyncStream<Void>? { database.changes(client: client, process) }

    func names(of client: String) async throws -> [String] {
        try await perform { rows, _ in
            rows.filter { $0.value.record != nil && RecordName.client(of: $0.key) == client }.keys.sorted()
        }
    }

    func newLocation() async throws -> String? { try await perform { _, _ in database.newLocation } }

    func setNewLocation(_ location: String?) async throws {
        try await perform { _, _ in database.newLocation = location }
    }

    private func shared(_ row: Database.Row, isOurs: Bool, at now: ContinuousClock.Instant) -> SharedRow {
        var mark = isOurs ? SharedRow.Mark.ours : .none
        if !isOurs, let standing = row.mark {
            mark = .others(for: now.duration(to: standing.until))
            if case .contested = standing.state { mark = .others(for: .zero) }
        }
        var empty = TokenRecord(
            revision: row.revision, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: nil)
        empty.moments = row.madeAt.map { .init(issuedAt: $0, expiresAt: $0) }
        var record = row.record ?? (row.revision > 0 ? empty : nil)
        // As a store does that reckons by its own clock, and keeps more than whole seconds.
        record?.moments?.isFromStore = true
        if let moments = record?.moments {
            let wall = process.clock.wallClock()
            record?.issuedAt = wall - moments.issuedAt.duration(to: now).components.seconds - 1
            record?.expiresAt = wall + now.duration(to: moments.expiresAt).components.seconds
            if moments.expiresAt <= now { record?.accessToken = nil }
        }
        return SharedRow(
            revision: row.revision, record: .success(record), mark: mark,
            age: row.madeAt.map { $0.duration(to: now) })
    }

    private func perform<Value: Sendable>(
        writes client: String? = nil, _ work: @escaping Database.Work<Value>
    ) async throws -> Value {
        do { return try await database.perform(by: process, writes: client, work) } catch is Database.Lost {
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
