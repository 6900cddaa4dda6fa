import Glibc
import Heimdallr

/// The steps of a lease on its connection's thread.
struct PostgresTransaction: Sendable {
    let space: String
    let client: String
    let sealing: RowSealing
    let names: ChangeNames
    let clock: HeimdallrClock
    /// How long the server lets it stand still.
    let leaseTime: Duration
    /// How long one statement may take.
    let answerTime: Duration

    enum Taken {
        case row(TokenRow, ServerStart, PostgresHolder)
        /// Somebody else has it.
        case locked
    }

    private var deadline: ContinuousClock.Instant { .now + answerTime }

    /// Begins a transaction and takes the row's lock, unless somebody has it; then nothing is begun.
    /// - Parameter lockTime: how long to stand in line for it; `nil`: not at all.
    /// - Throws: `PostgresFault`
    func take(_ link: PostgresLink, waiting lockTime: Duration? = nil) throws(PostgresFault) -> Taken {
        let name = Self.holder(client)
        // Once more after the row was made: a lock needs one, and who waits for one that another is about to make waits
        // for that one's whole transaction.
        for _ in 0..<2 {
            try link.run(
                script: Statements.begin(
                    idle: leaseTime.microseconds / 1000, statement: answerTime.microseconds / 1000,
                    lock: (lockTime ?? .seconds(1)).microseconds / 1000), by: deadline)
            let asked = ContinuousClock.now
            let rows: PostgresRows
            do throws(PostgresFault) {
                rows = try link.run(
                    lockTime == nil ? Statements.take : Statements.takeLate,
                    [.text(space), .text(client), .text(name)], by: deadline + (lockTime ?? .zero))
            } catch {
                guard error.sqlState == "55P03" else { throw error }
                try link.run(script: "ROLLBACK", by: deadline)
                return .locked
            }
            let heard = ContinuousClock.now
            if let revision = rows.integer(0, 2), revision >= 0, let server = rows.integer(0, 0) {
                FaultPoint.leaseGot.reach(client)
                return .row(
                    TokenRow(
                        revision: UInt64(revision), sealed: rows.bytes(0, 3), since: rows.integer(0, 4) ?? .min,
                        reading: ServerReading(server: server, asked: asked, heard: heard)),
                    ServerStart(time: rows.integer(0, 6) ?? 0, ago: .microseconds(rows.integer(0, 7) ?? -1)),
                    PostgresHolder(process: rows.integer(0, 8) ?? 0, name: name))
            }
            try link.run(script: "ROLLBACK", by: deadline)
            if rows.flag(0, 1) { return .locked }
            _ = try link.run(Statements.make, [.text(space), .text(client)], by: deadline)
        }
        return .locked
    }

    /// Who holds it, as pg_stat_activity shows it, which has 63 bytes for it: no two leases have the same.
    private static func holder(_ client: String) -> String {
        PostgresHolder.prefix + Hex.text((0..<4).map { _ in .random(in: .min ... .max) }) + " \(client)"
    }

    /// Ends a transaction of ours that we have lost sight of, and that may still hold the row.
    func end(_ holder: PostgresHolder, _ link: PostgresLink) throws(PostgresFault) {
        _ = try link.run(
            Statements.end,
            [.integer(holder.process), .text(String(decoding: holder.name.utf8.prefix(63), as: UTF8.self))],
            by: deadline)
    }

    /// Writes a record in the place of `row`, whose lock is held, and commits it.
    /// - Returns: the row's new revision.
    /// - Throws: `PostgresFault`: `.lost`, nobody knows what has become of it. `TokenStoreError`: it was not written.
    func write(_ record: TokenRecord?, over row: TokenRow, _ link: PostgresLink) throws -> UInt64 {
        // Somebody may be able to mend what can't be read.
        if record != nil, let sealed = row.sealed {
            _ = try sealing.open(sealed, client: client, revision: row.revision)
        }
        guard row.revision < UInt64(Int64.max) - 1 else {
            throw TokenStoreError("the record of \(client) has a revision past all bounds", kind: .unreadable)
        }
        var content = PostgresLink.Value.null
        var revision = row.revision + 1
        if var record {
            revision = max(revision, min(record.revision, UInt64(Int64.max) - 1))
            record.revision = revision
            let sealed = try sealing.seal(record, client: client, clock: clock)
            guard sealed.count <= Self.maxBytes else {
                throw TokenStoreError("the record of \(client) is larger than \(Self.maxBytes) bytes")
            }
            content = .bytes(sealed)
        }
        let written = row.reading.server(at: clock.now())
        FaultPoint.beforeUpdate.reach(client)
        let rows = try runAgainAndAgain(
            Statements.write,
            [
                .text(space), .text(client), .integer(Int64(row.revision)), .integer(Int64(revision)), content,
                .integer(written), .text(names.channel), .text(names.text(for: client)),
            ], link)
        guard rows.count == 1 else { throw PostgresFault(kind: .refused("02000"), text: "the row is gone") }
        FaultPoint.afterUpdate.reach(client)
        guard try link.commit(by: deadline) else {
            throw PostgresFault(kind: .refused("40000"), text: "the server has undone the transaction")
        }
        FaultPoint.afterCommit.reach(client)
        return revision
    }

    /// While the lock is held nobody else asks with what this replaces. So what the server can't do just now, with its disk
    /// full for one, is tried again for as long as the lease lasts.
    private func runAgainAndAgain(
        _ statement: String, _ values: [PostgresLink.Value], _ link: PostgresLink
    ) throws(PostgresFault) -> PostgresRows {
        let end = ContinuousClock.now + writeTime
        try link.run(script: "SAVEPOINT written", by: deadline)
        while true {
            do throws(PostgresFault) {
                return try link.run(statement, values, by: deadline)
            } catch {
                guard error.isPassing, ContinuousClock.now < end else { throw error }
                try link.run(script: "ROLLBACK TO SAVEPOINT written", by: deadline)
                usleep(.random(in: 50_000...150_000))
            }
        }
    }

    /// How long a write is tried while the lock is held.
    var writeTime: Duration { min(leaseTime - .seconds(1), .seconds(20)) }

    /// A record of more than this is not written.
    private static let maxBytes = 4 << 20

    /// Whether `row` is what somebody tried to write as `record` and does not know whether it was.
    func isWritten(_ record: TokenRecord?, _ row: TokenRow) -> Bool {
        guard let record else { return row.sealed == nil }
        guard let sealed = row.sealed,
            let there = try? sealing.open(sealed, client: client, revision: row.revision).stored.record
        else { return false }
        return there.accessToken == record.accessToken && there.refreshToken == record.refreshToken
            && there.signIn == record.signIn && there.scope == record.scope && there.dpopKey == record.dpopKey
    }
}

/// Whose transaction it is: the server's process, and what it is called there.
struct PostgresHolder: Sendable {
    static let prefix = "heimdallr-proxy lease "
    /// With the digits that tell leases apart.
    static let prefixLength = prefix.utf8.count + 9

    var process: Int64
    var name: String
}
