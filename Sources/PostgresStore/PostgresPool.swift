import Heimdallr
import Synchronization

/// Connections for leases: made when they are wanted, a few at a time, and closed when nobody wants them. Who waits for
/// one gets it in turn.
final class PostgresPool: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var idle: [(worker: PostgresWorker, since: Instant)] = []
        /// All of them, also those that are ending.
        var count = 0
        var waiting: [(number: UInt64, outcome: FirstOutcome<PostgresWorker>)] = []
        var lastNumber: UInt64 = 0
        var isClosed = false
        var isReaping = false
    }

    private let state = Mutex(State())
    private let limit: Int
    private let idleTime: Duration
    private let make: @Sendable (@escaping @Sendable () -> Void) throws -> PostgresWorker

    /// - Parameter make: makes one; what it is given is to be called when that one has ended.
    init(
        limit: Int, idleTime: Duration,
        make: @escaping @Sendable (@escaping @Sendable () -> Void) throws -> PostgresWorker
    ) {
        self.limit = limit
        self.idleTime = idleTime
        self.make = make
    }

    var count: Int { state.withLock { $0.count } }

    /// - Returns: one for the caller alone, to be given back or discarded.
    /// - Throws: `TokenStoreError` of the kind `.busy` when all are in use until `deadline`; `CancellationError`.
    func take(until deadline: Instant) async throws -> PostgresWorker {
        let outcome = FirstOutcome<PostgresWorker>()
        let (number, mayMake) = state.withLock { state -> (UInt64, Bool) in
            if let idle = state.idle.popLast() {
                outcome.end(.success(idle.worker))
                return (0, false)
            }
            if state.count < limit {
                state.count += 1
                return (0, true)
            }
            state.lastNumber += 1
            state.waiting.append((state.lastNumber, outcome))
            return (state.lastNumber, false)
        }
        if mayMake { makeOne(for: outcome) }
        let alarm = Task.detached { [limit] in
            do { try await Task.sleep(until: deadline, clock: .continuous) } catch { return }
            outcome.end(
                .failure(
                    TokenStoreError(
                        "all \(limit) connections to the token store are in use by other clients' token requests",
                        kind: .busy)))
        }
        defer {
            alarm.cancel()
            if number > 0 { state.withLock { state in state.waiting.removeAll { $0.number == number } } }
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { outcome.await($0) }
        } onCancel: {
            outcome.end(.failure(CancellationError()))
        }
    }

    /// Nothing is under way on it.
    func giveBack(_ worker: PostgresWorker) {
        let isClosed = state.withLock { state -> Bool in
            while !state.waiting.isEmpty {
                if state.waiting.removeFirst().outcome.end(.success(worker)) { return false }
            }
            guard !state.isClosed else { return true }
            state.idle.append((worker, .now))
            if !state.isReaping {
                state.isReaping = true
                Task.detached { [weak self, idleTime] in
                    repeat { try? await Task.sleep(for: idleTime / 2) } while self?.reap() == true
                }
            }
            return false
        }
        if isClosed { worker.stop() }
    }

    /// Closes it, whatever is under way on it.
    func discard(_ worker: PostgresWorker) { worker.stop() }

    /// Closes what is idle, now, and what is given back, then.
    func close() {
        let idle = state.withLock { state in
            state.isClosed = true
            defer { state.idle = [] }
            return state.idle
        }
        for entry in idle { entry.worker.stop() }
    }

    private func makeOne(for outcome: FirstOutcome<PostgresWorker>) {
        do {
            let worker = try make { [weak self] in self?.ended() }
            if !outcome.end(.success(worker)) { giveBack(worker) }
        } catch {
            outcome.end(.failure(error))
            ended()
        }
    }

    private func ended() {
        let next = state.withLock { state -> FirstOutcome<PostgresWorker>? in
            state.count -= 1
            guard state.count < limit, !state.waiting.isEmpty else { return nil }
            state.count += 1
            return state.waiting.removeFirst().outcome
        }
        if let next { makeOne(for: next) }
    }

    /// - Returns: whether there is more to come.
    private func reap() -> Bool {
        let (old, goesOn) = state.withLock { state in
            let limit = Instant.now - idleTime
            let old = state.idle.filter { $0.since <= limit }
            state.idle.removeAll { $0.since <= limit }
            state.isReaping = !state.idle.isEmpty
            return (old, state.isReaping)
        }
        for entry in old { entry.worker.stop() }
        return goesOn
    }
}
