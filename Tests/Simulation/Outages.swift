import Heimdallr

/// Faults of a database that answers: it refuses writes, holds statements up, or is another server than before.
final class Outages: @unchecked Sendable {
    enum Kind: Sendable {
        /// Each write is refused at once: a full disk, a server that became a standby, an administrator.
        case readOnly
        /// Each statement waits: a lock of a backup or a migration.
        case locked
        /// Each write is carried out, and its commit waits: a synchronous standby is away.
        case commits
    }

    /// Time after which a process gives a statement up.
    static let answerTime = Duration.seconds(5)

    fileprivate var kinds: [Kind: ContinuousClock.Instant] = [:]
    /// Statements that wait for the end of an outage. They may be carried out after their process has given them up.
    fileprivate var waiting: [(client: String?, run: (ContinuousClock.Instant) -> Void)] = []
    /// The rows as they were before each write, the newest last.
    fileprivate var journal: [(at: ContinuousClock.Instant, client: String, row: Database.Row?)] = []
    /// A former primary that still accepts writes, and the processes that are connected to it.
    fileprivate var former: (rows: Database.Rows, processes: [Process], since: ContinuousClock.Instant)?
    /// When a server took over that lacked commits, and what was lost.
    fileprivate var losses: [Loss] = []

    struct Loss {
        var at: ContinuousClock.Instant
        /// Clients whose mark was lost.
        var marks: Set<String> = []
        /// When two servers began to accept writes; `nil`: they never did.
        var splitAt: ContinuousClock.Instant?
        /// Whether records were moved meanwhile. What the new server lacked is then in the other store.
        var isWithinMove = false
    }
}

extension Database {
    private var now: ContinuousClock.Instant { world.now }

    private func isGoingOn(_ kind: Outages.Kind) -> Bool { outages.kinds[kind].map { now < $0 } ?? false }

    func begin(_ kind: Outages.Kind, for duration: Duration) {
        outages.kinds[kind] = max(outages.kinds[kind] ?? now, now + duration)
        Scheduler.shared.after(duration) { [self] in
            guard !isGoingOn(kind), kind != .readOnly else { return }
            let waiting = outages.waiting
            outages.waiting = []
            // The first statement of each row had its lock, and read the clock before the outage.
            for statement in waiting { statement.run(now) }
        }
    }

    /// Carries a statement out, now or later. If it takes too long, its process gives it up, and the server may carry it
    /// out all the same.
    func carryOut<Value: Sendable>(
        by process: Process, writes client: String?, _ work: @escaping Work<Value>
    ) async throws -> Value {
        if client != nil, isGoingOn(.readOnly) { throw Lost() }
        let began = now
        if let late = process.lateUntil, began < late {
            Scheduler.shared.after(Outages.answerTime + .milliseconds(Scheduler.shared.chance.within(0...40_000))) {
                [self] in
                guard !isGoingOn(.readOnly), !world.hasEnded else { return }
                _ = try? apply(by: process, client, now, work)
            }
            try await process.sleep(for: Outages.answerTime)
            throw Lost()
        }
        let waitsForCommit = isGoingOn(.commits) && client != nil
        guard waitsForCommit || isGoingOn(.locked) else { return try apply(by: process, client, now, work) }
        let outcome = FirstOutcome<Value>()
        // A row's first statement is carried out before the outage of commits ends, and then nobody else's.
        let hasLock = waitsForCommit && !outages.waiting.contains { $0.client == client }
        let isCancelled = !hasLock && Scheduler.shared.chance.once(in: 2)
        outages.waiting.append(
            (
                client,
                { [self] end in
                    guard !(isCancelled && outcome.hasEnded), isUp else { return }
                    outcome.end(Result { try apply(by: process, client, hasLock ? began : end, work) })
                }
            ))
        Scheduler.shared.after(Outages.answerTime) { outcome.end(.failure(Lost())) }
        let value = try await withCheckedThrowingContinuation { outcome.await($0) }
        try await process.pass()
        return value
    }

    private func apply<Value>(
        by process: Process, _ client: String?, _ time: ContinuousClock.Instant, _ work: Work<Value>
    ) throws -> Value {
        if outages.former?.processes.contains(where: { $0 === process }) == true, var former = outages.former {
            defer { outages.former = former }
            return try work(&former.rows, time)
        }
        if let client { outages.journal.append((now, client, rows[client])) }
        return try work(&rows, time)
    }

    // MARK: Other servers

    /// The rows as a standby had them that was behind by so much.
    private func rows(before lag: Duration) -> Rows {
        var rows = rows
        for entry in outages.journal.reversed() where entry.at > now - lag { rows[entry.client] = entry.row }
        return rows
    }

    /// The primary dies, and a standby that lacks the last commits takes over.
    func forget(_ lag: Duration, away duration: Duration) {
        guard isUp, outages.former == nil else { return }
        let standby = rows(before: lag)
        lose(rows, for: standby)
        rows = standby
        outages.journal = []
        crash(for: duration)
    }

    /// A standby is promoted, and the former primary goes on for a while.
    func split(_ lag: Duration, for duration: Duration) {
        guard isUp, outages.former == nil else { return }
        let processes = world.processes.filter { _ in Scheduler.shared.chance.once(in: 2) }
        outages.former = (rows, processes, now)
        rows = rows(before: lag)
        outages.journal = []
        for process in world.processes where !processes.contains(where: { $0 === process }) { move(process) }
        tellAll()
        Scheduler.shared.after(duration) { [self] in
            guard let former = outages.former else { return }
            outages.former = nil
            lose(former.rows, splitAt: former.since, for: rows)
            for process in former.processes { move(process) }
            tellAll()
        }
    }

    /// The process connects to another server.
    private func move(_ process: Process) {
        drop(process)
        process.movedAt = now
    }

    private func lose(_ old: Rows, splitAt: ContinuousClock.Instant? = nil, for new: Rows) {
        var loss = Outages.Loss(at: now, splitAt: splitAt, isWithinMove: world.isMoving)
        for (client, row) in old.sorted(by: { $0.key < $1.key }) {
            let successor = new[client]
            if let mark = row.mark, mark.owner != successor?.mark?.owner { loss.marks.insert(client) }
            guard row.revision > successor?.revision ?? 0 else { continue }
            world.forgot(row.record?.refreshToken?.revealed, for: successor?.record?.refreshToken?.revealed)
        }
        outages.losses.append(loss)
    }

    /// Reason for a second use of a refresh token that nothing in the database could prevent; `nil`: none.
    /// - Parameters:
    ///   - record: name of the client's record.
    ///   - use: the first use.
    func excuse(for use: Authority.Presentation, of client: String, by process: Process) -> String? {
        // A process that knows no other server gives those that do no time.
        if let since = outages.former?.since, max(process.startedAt, use.process.startedAt) > since - .seconds(1) {
            return "two servers wrote"
        }
        for loss in outages.losses {
            if loss.splitAt != nil, loss.isWithinMove { return "records were moved while two servers wrote" }
            let since = loss.at.duration(to: now)
            if let began = loss.splitAt, since < .seconds(15), process.startedAt > began - .seconds(1) {
                return "two servers wrote"
            }
            let isMarkLost = loss.marks.contains { RecordName.client(of: $0) == client }
            let savedAt = use.savedAt ?? now
            if isMarkLost, savedAt >= loss.at, abs(use.at.duration(to: loss.at).components.seconds) < 60 {
                return "the database forgot the mark"
            }
            guard use.forgottenAt == loss.at else { continue }
            // Two outages at once: nobody can restore anything in the time that is left for it.
            let heldUp = (outages.kinds.values + [slowUntil].compactMap { $0 }).max()
            if let heldUp, heldUp > loss.at, now < heldUp + .seconds(15) { return "the new server held everybody up" }
            if use.process.isDead || use.process.absence(since: loss.at) > .zero {
                return "nobody knew what was forgotten"
            }
            if now < (backAt ?? loss.at) + .seconds(3) { return "it was forgotten a moment ago" }
        }
        return nil
    }
}
