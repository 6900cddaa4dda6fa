import Glibc
import Heimdallr
import SharedStore
import Synchronization

/// Reads and writes rows in PostgreSQL. Each step is one statement and one transaction.
final class PostgresEngine: SharedRecordEngine {
    private let settings: PostgresStoreSettings
    private let sealing: RowSealing
    private let names: ChangeNames
    private let clock: HeimdallrClock
    private let session: PostgresSession
    /// The last reading of the database's clock.
    let reading = Mutex<ServerReading?>(nil)
    /// Whether this process moves the records, and so ignores the note of a move.
    let isMoving = Atomic(false)

    init(
        _ settings: PostgresStoreSettings, _ sealing: RowSealing, _ names: ChangeNames, _ clock: HeimdallrClock,
        _ session: PostgresSession
    ) {
        self.settings = settings
        self.sealing = sealing
        self.names = names
        self.clock = clock
        self.session = session
    }

    deinit { session.stop() }

    // MARK: The contract

    func read(client: String) async throws -> SharedRow {
        try check(client)
        return try await convertingFaults {
            let answer = try await run(Statements.read, [.text(settings.space), .text(client)])
            var row = row(answer, of: client)
            if case .others(let left) = row.mark, left <= .zero { row.mark = .none }
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
        try check(client)
        return try await convertingFaults {
            // A missing row, a deadline by an outdated clock, and a takeover need another statement.
            for _ in 0..<4 {
                let answer = try await run(
                    Statements.mark,
                    [
                        .text(settings.space), .text(client), revision.map { .integer(Int64(clamping: $0)) } ?? .null,
                        .text(owner), .integer(time.microseconds), .integer(isRenewal ? -1 : session.restraint),
                        .integer(isMoving.load(ordering: .relaxed) ? 1 : 0), .integer(try await deadline()),
                        .integer(settings.takeoverTime.microseconds), .text(names.channel),
                        .text(names.text(for: client)),
                    ])
                guard answer.rows.count > 0 else {
                    try await make(client)
                    continue
                }
                if let location = answer.rows.text(0, 6) { throw MovedStore.late(settings.location, movedTo: location) }
                let row = row(answer, of: client)
                if ["late", "take"].contains(answer.rows.text(0, 7)) { continue }
                return row
            }
            throw PostgresFault.lost("the row changes too often")
        }
    }

    func unmark(client: String, owner: String) async throws {
        _ = try await convertingFaults {
            try await change(
                Statements.unmark,
                [
                    .text(settings.space), .text(client), .text(owner), .text(names.channel),
                    .text(names.text(for: client)),
                ])
        }
    }

    func swap(client: String, revision: UInt64, for record: TokenRecord?) async throws -> UInt64? {
        try check(client)
        guard revision < UInt64(Int64.max) - 1 else {
            throw TokenStoreError(
                "the revision of the record of \(RecordName.owner(of: client)) is too large", kind: .unreadable)
        }
        return try await convertingFaults {
            if revision == 0 { try await make(client) }
            let reading = try await reading(noOlderThan: Self.readingTime)
            var saved = reading.server(at: clock.now())
            let next = max(revision + 1, min(record?.revision ?? 0, UInt64(Int64.max) - 1))
            var content = PostgresLink.Value.null
            if var record, record.holdsAnything || record.signIn != nil {
                record.revision = next
                let sealed = try sealing.seal(record, client: client, clock: clock)
                guard sealed.count <= Self.maxBytes else {
                    throw TokenStoreError(
                        "the record of \(RecordName.owner(of: client)) is larger than \(Self.maxBytes) bytes")
                }
                content = .bytes(sealed)
            } else if let moments = record?.moments {
                saved -= max(0, moments.issuedAt.duration(to: clock.now()).microseconds)
            }
            let isWritten = try await change(
                Statements.swap,
                [
                    .text(settings.space), .text(client), .integer(Int64(revision)), .integer(Int64(next)), content,
                    .integer(saved), .text(names.channel), .text(names.text(for: client)),
                ])
            guard isWritten else { return nil }
            session.changes.know(next, of: client)
            return next
        }
    }

    func changes(client: String) -> AsyncStream<Void>? { session.changes.changes(client: client) }

    // MARK: Details

    private static let maxBytes = 4 << 20
    /// Time for which a reading of the database's clock is reused.
    private static let readingTime = Duration.seconds(60)

    private func check(_ client: String) throws(TokenStoreError) {
        guard (1...240).contains(client.utf8.count), !client.utf8.contains(0) else {
            throw TokenStoreError("the token store needs client names of 1 to 240 bytes", kind: .misconfigured)
        }
    }

    private func run(_ statement: String, _ values: [PostgresLink.Value]) async throws -> PostgresSession.Answer {
        try await session.run(statement, values, within: settings.answerTime)
    }

    private func make(_ client: String) async throws {
        _ = try await run(Statements.make, [.text(settings.space), .text(client)])
    }

    /// Runs a statement that returns the server's clock and the number of rows it changed, and whose last parameter is
    /// its deadline. Runs it again if it found itself late only because the server's clock was set.
    private func change(_ statement: String, _ values: [PostgresLink.Value]) async throws -> Bool {
        for _ in 0..<2 {
            let deadline = try await deadline()
            let answer = try await run(statement, values + [.integer(deadline)])
            if answer.rows.integer(0, 1) ?? 0 > 0 { return true }
            guard let server = answer.rows.integer(0, 0), server > deadline else { return false }
            note(server, answer)
        }
        throw PostgresFault.lost("the server's clock changes too often")
    }

    /// Time by the server's clock after which a statement that is sent now does nothing, because its caller has given
    /// it up. The first statement after the server's clock was set, or on another server, may find itself late.
    private func deadline() async throws -> Int64 {
        let reading = try await reading(noOlderThan: .seconds(3600))
        return reading.latestServer(at: clock.now()) + settings.answerTime.microseconds
    }

    private func reading(noOlderThan age: Duration) async throws -> ServerReading {
        if let last = reading.withLock({ $0 }), last.heard.duration(to: clock.now()) < age { return last }
        let answer = try await run(Statements.clock, [])
        return note(answer.rows.integer(0, 0) ?? 0, answer)
    }

    @discardableResult
    private func note(_ server: Int64, _ answer: PostgresSession.Answer) -> ServerReading {
        let fresh = ServerReading(server: server, asked: answer.asked, heard: answer.heard)
        reading.withLock { $0 = fresh }
        return fresh
    }

    /// Reads the columns of `Statements.read`. No row counts as an empty row.
    private func row(_ answer: PostgresSession.Answer, of client: String) -> SharedRow {
        let rows = answer.rows
        guard let server = rows.integer(0, 0), let revision = rows.integer(0, 1), revision >= 0 else {
            return SharedRow(revision: 0, record: .success(nil), mark: .none)
        }
        let fresh = note(server, answer)
        session.changes.know(UInt64(revision), of: client)
        let record = Result { () throws(TokenStoreError) in
            try sealing.record(
                client: client, revision: UInt64(revision), sealed: rows.bytes(0, 2),
                rowAge: rows.integer(0, 3) ?? .min, reading: fresh, clock: clock)
        }
        var mark = SharedRow.Mark.none
        if rows.flag(0, 4) {
            mark = .ours
        } else if let left = rows.integer(0, 5) {
            // Zero for a mark that is contested, negative for one that has ended.
            mark = .others(for: .microseconds(left))
        }
        let made = (try? record.get())??.moments?.issuedAt
        return SharedRow(
            revision: UInt64(revision), record: record, mark: mark, age: made.map { $0.duration(to: fresh.asked) })
    }
}

/// Turns faults of the database into errors of the store.
func convertingFaults<Value>(isStart: Bool = false, _ body: () async throws -> Value) async throws -> Value {
    do {
        return try await body()
    } catch let fault as PostgresFault { throw isStart ? fault.storeError : fault.runtimeError }
}
