import CLinux
import Glibc
import Heimdallr
import Synchronization

/// A thread of its own for one connection. What is to be done there is done in turn; who waits for it waits no longer
/// than said, whatever the network or a resolver does to the thread.
final class PostgresWorker: Sendable {
    typealias Job = @Sendable (PostgresLink) -> Void
    /// Done before each wait. - Returns: how long to wait at most, or until something comes.
    typealias Round = @Sendable (PostgresLink) -> Duration

    private struct State {
        var jobs: [Job] = []
        var isStopped = false
    }

    private let state = Mutex(State())
    private let wakeUp: Int32
    private let round: Round
    private let heard: @Sendable ([String]) -> Void
    private let ended: @Sendable () -> Void

    /// - Parameters:
    ///   - round: what there is to do beside jobs; for as long as it takes no job is done.
    ///   - broke: a connection that stood is no more.
    ///   - heard: gets the notifications that came.
    ///   - ended: the thread is over, and the connection closed.
    /// - Throws: `TokenStoreError` where there can be no thread.
    init(
        _ target: ConnectionTarget, _ libpq: Libpq.Table, round: @escaping Round = { _ in .seconds(3600) },
        broke: @escaping @Sendable () -> Void = {},
        heard: @escaping @Sendable ([String]) -> Void = { _ in }, ended: @escaping @Sendable () -> Void = {}
    ) throws(TokenStoreError) {
        self.round = round
        self.heard = heard
        self.ended = ended
        wakeUp = eventfd(0, heimdallr_eventfd_flags)
        guard wakeUp >= 0 else { throw Self.noThread }
        let start = Start(worker: self, link: PostgresLinkMaker(target: target, libpq: libpq, broke: broke))
        var thread = pthread_t()
        let context = unsafe Unmanaged.passRetained(start).toOpaque()
        let code = unsafe pthread_create(
            &thread, nil,
            { context in
                guard let context = unsafe context else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                start.worker.work(start.link.make())
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
        let link: PostgresLinkMaker

        init(worker: PostgresWorker, link: PostgresLinkMaker) {
            self.worker = worker
            self.link = link
        }
    }

    /// What a link is made of, on the thread that it belongs to.
    private struct PostgresLinkMaker: Sendable {
        let target: ConnectionTarget
        let libpq: Libpq.Table
        let broke: @Sendable () -> Void

        func make() -> PostgresLink { PostgresLink(target, libpq, broke: broke) }
    }

    private static let noThread = TokenStoreError("the system gives the token store no thread", kind: .unreachable)

    deinit { if wakeUp >= 0 { close(wakeUp) } }

    // MARK: From any thread

    /// Does `work` on the thread.
    /// - Throws: what it throws, or `PostgresFault.lost` when it has not ended within `limit`; it goes on then.
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
                // Nobody waits for it any more, and it has not begun.
                guard !outcome.hasEnded else { return }
                outcome.end(Result { try work(link) })
            }
            if !isTaken { outcome.end(.failure(PostgresFault.lost("the token store is closed"))) }
        }
    }

    /// - Returns: whether it will be done.
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

    /// Ends the thread, and with it the connection, after what stands in its queue.
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
            // Also sees when the server has ended the connection.
            if link.isOpen, let texts = try? link.notifications(), !texts.isEmpty { heard(texts) }
            let limit = round(link)
            // What the round was given to do, or what came meanwhile.
            if state.withLock({ !$0.jobs.isEmpty }) { continue }
            wait(link, limit)
        }
        link.close()
        ended()
    }

    /// Until there is a job, the server says something, or the time is over. poll(2).
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
