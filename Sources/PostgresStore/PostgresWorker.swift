import CLinux
import Glibc
import Heimdallr
import Synchronization

/// The thread of one connection. It runs jobs in order. Callers wait for a limited time, even if the network or a resolver holds
/// the thread.
final class PostgresWorker: Sendable {
    typealias Job = @Sendable (PostgresLink) -> Void
    /// Called before each wait. Returns the limit of the wait.
    typealias Round = @Sendable (PostgresLink) -> Duration

    private struct State {
        var jobs: [Job] = []
        var isStopped = false
    }

    private let state = Mutex(State())
    private let wakeUp: Int32
    private let round: Round
    private let heard: @Sendable ([String]) -> Void
    /// - Parameters:
    ///   - round: work beside jobs, which delays them.
    ///   - broke: called when the server or the network ended a connection.
    ///   - heard: called with notifications.
    /// - Throws: `TokenStoreError` without a free thread.
    init(
        _ target: ConnectionTarget, _ libpq: Libpq.Table, round: @escaping Round = { _ in .seconds(3600) },
        broke: @escaping @Sendable () -> Void = {},
        heard: @escaping @Sendable ([String]) -> Void = { _ in }
    ) throws(TokenStoreError) {
        self.round = round
        self.heard = heard
        wakeUp = eventfd(0, heimdallr_eventfd_flags)
        guard wakeUp >= 0 else { throw Self.noThread }
        let start = Start(worker: self) { PostgresLink(target, libpq, broke: broke) }
        var thread = pthread_t()
        let context = unsafe Unmanaged.passRetained(start).toOpaque()
        let code = unsafe pthread_create(
            &thread, nil,
            { context in
                guard let context = unsafe context else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                start.worker.work(start.makeLink())
                return nil
            }, context)
        guard code == 0 else {
            unsafe Unmanaged<Start>.fromOpaque(context).release()
            throw Self.noThread
        }
        _ = unsafe pthread_setname_np(thread, "token store")
        _ = pthread_detach(thread)
    }

    private final class Start: Sendable {
        let worker: PostgresWorker
        /// Makes the link on the thread that it belongs to.
        let makeLink: @Sendable () -> PostgresLink

        init(worker: PostgresWorker, makeLink: @escaping @Sendable () -> PostgresLink) {
            self.worker = worker
            self.makeLink = makeLink
        }
    }

    private static let noThread = TokenStoreError("the token store got no thread from the system", kind: .unreachable)

    deinit { if wakeUp >= 0 { close(wakeUp) } }

    // MARK: From any thread

    /// Runs `work` on the thread.
    /// - Throws: the error of `work`, or `PostgresFault.lost` after `limit`, while `work` goes on.
    func perform<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable (PostgresLink) throws -> Value
    ) async throws -> Value {
        let outcome = FirstOutcome<Value>()
        let alarm = Task.detached {
            do { try await Task.sleep(for: limit) } catch { return }
            outcome.end(.failure(PostgresFault.lost("no answer within \(limit)")))
        }
        defer { alarm.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            outcome.await(continuation)
            let isTaken = post { link in
                // The caller has given up.
                guard !outcome.hasEnded else { return }
                outcome.end(Result { try work(link) })
            }
            if !isTaken { outcome.end(.failure(PostgresFault.lost("the token store is closed"))) }
        }
    }

    /// Rows of a statement, and the times before and after it.
    typealias Answer = (rows: PostgresRows, asked: ContinuousClock.Instant, heard: ContinuousClock.Instant)

    /// Runs one statement, which is one transaction.
    /// - Parameter open: opens the connection by the deadline, if it is closed.
    func run(
        _ statement: String, _ values: [PostgresLink.Value], within limit: Duration,
        opening open: @escaping @Sendable (PostgresLink, _ deadline: ContinuousClock.Instant) throws -> Void
    ) async throws -> Answer {
        try await perform(within: limit) { link in
            let deadline = ContinuousClock.now + limit
            try open(link, deadline)
            let asked = ContinuousClock.now
            return (try link.run(statement, values, by: deadline), asked, .now)
        }
    }

    /// - Returns: whether the job will run.
    @discardableResult
    func post(_ job: @escaping Job) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isStopped else { return false }
            state.jobs.append(job)
            return true
        }
        if isTaken { wake() }
        return isTaken
    }

    /// Ends the thread and the connection after the queued jobs.
    func stop() {
        state.withLock { $0.isStopped = true }
        wake()
    }

    func wake() {
        var one: UInt64 = 1
        _ = unsafe write(wakeUp, &one, MemoryLayout<UInt64>.size)
    }

    // MARK: The thread

    private func work(_ link: PostgresLink) {
        while true {
            while let job = state.withLock({ $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }) { job(link) }
            if state.withLock({ $0.isStopped && $0.jobs.isEmpty }) { break }
            // Also detects that the server has ended the connection.
            if link.isOpen, let texts = try? link.notifications(), !texts.isEmpty { heard(texts) }
            let limit = round(link)
            if state.withLock({ !$0.jobs.isEmpty }) { continue }
            wait(link, limit)
        }
        link.close()
    }

    /// Waits for a job, for bytes of the server, or until the limit. poll(2).
    private func wait(_ link: PostgresLink, _ limit: Duration) {
        var entries = [pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)]
        if link.isOpen { entries.append(pollfd(fd: link.descriptor, events: Int16(POLLIN), revents: 0)) }
        let count = nfds_t(entries.count)
        _ = unsafe entries.withUnsafeMutableBufferPointer { unsafe poll($0.baseAddress, count, limit.milliseconds) }
        if entries[0].revents != 0 {
            var sum: UInt64 = 0
            _ = unsafe read(wakeUp, &sum, MemoryLayout<UInt64>.size)
        }
    }
}
