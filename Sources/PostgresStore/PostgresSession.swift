import Glibc
import Heimdallr
import Reactor
import SharedStore
import Synchronization

/// The connection of this process to the database, and its thread. The thread runs statements in order, and listens for
/// changes of records. Callers wait for a limited time, even while the network or a resolver blocks the thread.
///
/// A pooler may give each transaction another connection, and then notifications are lost. Behind a pooler, the thread
/// polls the revisions of all watched clients about once a second, in one statement.
final class PostgresSession: Sendable {
    typealias Instant = ContinuousClock.Instant
    /// Rows of a statement, and the times before and after it.
    typealias Answer = (rows: PostgresRows, asked: Instant, heard: Instant)

    private struct State {
        var jobs: [@Sendable (PostgresLink) -> Void] = []
        /// Whether the thread connects without waiting for a job.
        var isListening = false
        var isStopped = false
        var isPolling = false
        var pollAt: Instant?
        /// Time at which a read-only connection ends, so that a server that writes is looked for.
        var lookAt: Instant?
        /// Fault of a database that only reads.
        var readOnly: PostgresFault?
    }

    private static let readOnly = PostgresFault(kind: .refused("25006"), text: "no server of the database writes")
    /// Interval between readings of a secret that the server refused.
    private static let secretInterval = Duration.seconds(1)

    /// Longest interval between polls behind a pooler.
    private static let pollInterval = Duration.milliseconds(950)
    /// Interval between checks of a connection that gets notifications.
    private static let heartbeat = Duration.seconds(15)

    let changes = ChangeStreams()
    private let space: String
    private let names: ChangeNames
    private let fresh: FreshTarget
    private let youth: Duration
    private let state = Mutex(State())
    private let reach = Mutex(Reachability())
    private let wakeUp: WakeUp

    /// Starts the thread, which keeps this object until `stop`. Connects to nothing yet.
    /// - Throws: `TokenStoreError` without a free thread or descriptor.
    init(
        _ fresh: FreshTarget, _ libpq: Libpq.Table, space: String, names: ChangeNames, youth: Duration
    ) throws(TokenStoreError) {
        (self.fresh, self.youth) = (fresh, youth)
        self.space = space
        self.names = names
        do throws(SystemError) {
            wakeUp = try WakeUp()
            try startThread("token store") { [self] in
                work(PostgresLink(fresh.target, libpq) { [weak self] in self?.reach.withLock { $0.broke() } })
            }
        } catch {
            throw TokenStoreError("the token store got no thread from the system", kind: .unreachable)
        }
    }

    // MARK: From any thread

    /// Begins to listen, as soon as the database is reachable.
    func listen() {
        state.withLock { $0.isListening = true }
        wakeUp.wake()
    }

    /// Ends the thread and the connection after the queued jobs. Later calls fail.
    func stop() {
        state.withLock { $0.isStopped = true }
        wakeUp.wake()
        changes.finish()
    }

    /// Whether the thread polls, because a pooler drops notifications.
    var isPolling: Bool { state.withLock { $0.isPolling } }

    /// Marks that this process leaves alone, as in `Statements.mark`. The row decides about a takeover. This restraint
    /// only gives other processes time to save, or to restore records that a promoted server lacks.
    var restraint: Int64 {
        reach.withLock { reach in
            if reach.isSettling(now: .now) { return 2 }
            return reach.isNewcomer(now: .now) ? 3 : reach.isInGrace(now: .now) ? 1 : 0
        }
    }

    /// Fault of the database, as far as known: it can't be reached, or not be written.
    var fault: PostgresFault? { reach.withLock { $0.fault } ?? state.withLock { $0.readOnly } }

    /// Runs one statement, which is one transaction. Repeats it if the server undid it because of a concurrent one.
    /// - Throws: `PostgresFault`. While the database is known to be unreachable, throws the last fault at once.
    func run(_ statement: String, _ values: [PostgresLink.Value], within limit: Duration) async throws -> Answer {
        if let fault = reach.withLock({ $0.isKnownAway(now: .now) ? $0.fault : nil }) { throw fault }
        let end = Instant.now + limit
        while true {
            do {
                return try await perform(within: Instant.now.duration(to: end)) { link, deadline in
                    let asked = Instant.now
                    return (try link.run(statement, values, by: deadline), asked, .now)
                }
            } catch let fault as PostgresFault where fault.isConflict {
                // A random pause, so that two processes do not collide again.
                try? await Task.sleep(for: .milliseconds(.random(in: 5...50)))
                guard Instant.now < end, !Task.isCancelled else { throw fault }
            }
        }
    }

    /// Runs `work` on the thread, with an open connection.
    /// - Throws: the error of `work`, or `PostgresFault.lost` after `limit`, while `work` goes on.
    func perform<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable (PostgresLink, _ deadline: Instant) throws -> Value
    ) async throws -> Value {
        // The wait for the thread counts, too: the server would carry out a late statement that its caller gave up.
        let deadline = Instant.now + limit
        return try await FirstOutcome.wait {
            try? await Task.sleep(until: deadline, clock: .continuous)
            return .failure(PostgresFault.lost("no answer within \(limit)"))
        } begin: { outcome in
            let isTaken = post { [self] link in
                // The caller has given up.
                guard !outcome.hasEnded else { return }
                outcome.end(
                    Result {
                        try open(link, by: deadline)
                        return try work(link, deadline)
                    })
            }
            if !isTaken { outcome.end(.failure(PostgresFault.lost("the token store is closed"))) }
        }
    }

    /// Adds a job for the thread. Returns `false` after `stop`: the job will not run.
    private func post(_ job: @escaping @Sendable (PostgresLink) -> Void) -> Bool {
        let isTaken = state.withLock { state in
            if !state.isStopped { state.jobs.append(job) }
            return !state.isStopped
        }
        wakeUp.wake()
        return isTaken
    }

    // MARK: The thread

    private func work(_ link: PostgresLink) {
        while true {
            link.abandoned.look()
            while let job = state.withLock({ $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }) { job(link) }
            if state.withLock({ $0.isStopped && $0.jobs.isEmpty }) { break }
            // This read also detects that the server has ended the connection.
            if link.isOpen, let texts = try? link.notifications() { reportChanges(texts) }
            let limit = reconnectAndPoll(link)
            if state.withLock({ $0.jobs.isEmpty }) { wait(link, limit) }
        }
        link.close()
    }

    /// Waits for a job, for bytes of the server, or until the limit. poll(2).
    private func wait(_ link: PostgresLink, _ limit: Duration) {
        var entries = [pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0)]
        let others = link.abandoned.descriptors + (link.isOpen ? [link.descriptor] : [])
        entries += others.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        let count = nfds_t(entries.count)
        _ = unsafe entries.withUnsafeMutableBufferPointer {
            unsafe poll($0.baseAddress, count, Int32(limit.wholeMilliseconds))
        }
        if entries[0].revents != 0 { wakeUp.clear() }
    }

    /// Connects if there is no connection, and polls if a poll is due. Does nothing before `listen()`.
    /// - Returns: the limit of the next wait.
    private func reconnectAndPoll(_ link: PostgresLink) -> Duration {
        guard state.withLock({ $0.isListening }) else { return .seconds(3600) }
        // Another server may write by now.
        if link.isReadOnly, state.withLock({ $0.lookAt.map { $0 <= .now } ?? true }) { link.close() }
        do { try open(link, by: .now + link.target.longestAttempt) } catch {
            let now = Instant.now
            let pause = max(.milliseconds(20), now.duration(to: reach.withLock { $0.nextTry(now: now) }))
            guard reach.withLock({ $0.fault?.isCredentialRefusal ?? false }) else { return pause }
            // A changed secret ends the pause.
            if fresh.read(wasRefused: false, by: now + .seconds(1)) { reach.withLock { $0.retry(now: .now) } }
            return min(pause, Self.secretInterval)
        }
        if state.withLock({ $0.pollAt.map { $0 <= .now } ?? true }) { pollRevisions(link, changes.clients) }
        return state.withLock { state in
            let next = min(state.pollAt ?? .now, state.lookAt ?? .now + .seconds(3600))
            return max(.zero, Instant.now.duration(to: next))
        }
    }

    /// Opens the connection, unless it is open. If an attempt failed a moment ago, throws its fault instead.
    private func open(_ link: PostgresLink, by deadline: Instant) throws {
        guard !link.isOpen else { return }
        guard reach.withLock({ $0.mayTry(now: .now) }) else {
            throw reach.withLock { $0.fault } ?? .lost("another attempt to reach it is under way")
        }
        var isPooled = false
        let began = Instant.now
        do throws(PostgresFault) {
            try openFresh(link, by: deadline)
            // Behind a pooler, the announced process is not the one that runs the statement.
            isPooled = link.process != Int64(link.announcedProcess)
            let isFirst = reach.withLock { $0.isFirst }
            let isYoung = isFirst ? try isYoung(link, by: deadline) : false
            reach.withLock { $0.reached(server: link.serverStart ?? 0, isYoung: isYoung, now: .now) }
            // A standby has no notifications, and no lock of it concerns the primary.
            if !isPooled, !link.isReadOnly {
                _ = try link.run("LISTEN \(names.channel)", by: deadline)
                // The lock belongs to the connection, which a pooler would give to others.
                _ = try link.run(Statements.use, [.text(space)], by: deadline)
            }
        } catch {
            link.close()
            reach.withLock { $0.failed(error, now: .now, random: .random(in: 0..<1)) }
            throw error
        }
        let wasReadOnly = state.withLock { $0.readOnly != nil }
        reach.withLock { reach in
            // Other processes could not save either while no server wrote.
            if wasReadOnly, !link.isReadOnly { reach.writesAgain(now: .now) }
            reach.succeeded(now: .now)
        }
        state.withLock { state in
            state.readOnly = link.isReadOnly ? Self.readOnly : nil
            state.isPolling = isPooled || link.isReadOnly
            state.pollAt = nil
            // A search may take long, and reads wait for it.
            let pause = max(Self.pollInterval, began.duration(to: .now) * 2)
            state.lookAt = link.isReadOnly ? .now + pause : nil
        }
        // Notifications may have been lost while there was no connection. Where no server writes, polls tell of changes.
        if !wasReadOnly || !link.isReadOnly { changes.tell() }
    }

    /// Returns whether the server was started or promoted a moment ago; `false` at a server that does not tell.
    private func isYoung(_ link: PostgresLink, by deadline: Instant) throws(PostgresFault) -> Bool {
        do throws(PostgresFault) {
            return try link.run(Statements.isYoung, [.integer(youth.microseconds)], by: deadline).flag(0, 0)
        } catch {
            guard link.isOpen else { throw error }
            return false
        }
    }

    /// Opens the connection with the current secret. If the server refuses it, reads the secret again, from its command
    /// too, and tries once more if it has changed.
    private func openFresh(_ link: PostgresLink, by deadline: Instant) throws(PostgresFault) {
        let wasRefused = reach.withLock { $0.fault?.isCredentialRefusal ?? false }
        fresh.read(wasRefused: wasRefused, by: deadline)
        do throws(PostgresFault) {
            link.target = fresh.target
            try link.open(by: deadline)
        } catch {
            guard error.isCredentialRefusal, !wasRefused, fresh.read(wasRefused: true, by: deadline) else {
                throw fresh.explained(error)
            }
            link.target = fresh.target
            do throws(PostgresFault) { try link.open(by: deadline) } catch { throw fresh.explained(error) }
        }
    }

    private func pollRevisions(_ link: PostgresLink, _ clients: Set<String>) {
        let isPolling = isPolling
        let interval = isPolling ? Self.pollInterval * Double.random(in: 0.85...1) : Self.heartbeat
        state.withLock { $0.pollAt = .now + interval }
        guard !isPolling || !clients.isEmpty else { return }
        let values: [PostgresLink.Value] = [.text(space), .text(Self.array(clients.sorted()))]
        guard let rows = try? link.run(Statements.revisions, values, by: .now + .seconds(5)) else { return }
        for row in 0..<rows.count {
            guard let client = rows.text(row, 0), let revision = rows.integer(row, 1) else { continue }
            changes.saw(UInt64(bitPattern: revision), isMarked: rows.flag(row, 2), of: client)
        }
    }

    private func reportChanges(_ texts: [String]) {
        let digests = Set(texts.compactMap { names.digest(in: $0) })
        guard !digests.isEmpty else { return }
        changes.tell { digests.contains(names.digest(of: $0)) }
    }

    /// Writes an array literal. https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
    private static func array(_ elements: [String]) -> String {
        let quoted = elements.map { element in
            "\"" + element.reduce(into: "") { $0 += $1 == "\"" || $1 == "\\" ? "\\\($1)" : String($1) } + "\""
        }
        return "{" + quoted.joined(separator: ",") + "}"
    }
}
