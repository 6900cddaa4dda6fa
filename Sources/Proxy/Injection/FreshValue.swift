import Synchronization

/// What requests need and somebody has to read: read at start and again and again, off the loops. What was read last and
/// was good stays when the next reading fails. Any thread.
final class FreshValue<Value: Sendable>: Sendable {
    struct Reading: Sendable {
        var value: Value
        /// Not used any more from then on; `nil`: it has no end.
        var ends: ContinuousClock.Instant?
        /// When it is read again; `nil`: never.
        var again: Duration?
    }

    private struct State {
        var reading: Reading?
        var isFailing = false
        var reader: Task<Void, Never>?
    }

    private let read: @Sendable () async throws -> Reading
    private let failed: @Sendable (any Error) -> Void
    private let afterFailure: Duration
    private let state = Mutex(State())

    /// - Parameters:
    ///   - afterFailure: how long after a reading that failed the next one begins.
    ///   - failed: told of the first of several failures.
    init(
        afterFailure: Duration = .seconds(1), read: @escaping @Sendable () async throws -> Reading,
        failed: @escaping @Sendable (any Error) -> Void
    ) {
        self.read = read
        self.failed = failed
        self.afterFailure = afterFailure
    }

    deinit { state.withLock { $0.reader?.cancel() } }

    /// Never waits. `nil`: it could not be read yet, or its time is over.
    func current() -> Value? {
        state.withLock { state in
            guard let reading = state.reading else { return nil }
            if let ends = reading.ends, ends <= .now { return nil }
            return reading.value
        }
    }

    /// Reads it for the first time; returns when that is over, well or not.
    func start() async {
        guard var pause = await take() else { return }
        let reader = Task { [weak self] in
            while (try? await Task.sleep(for: pause)) != nil {
                guard let next = await self?.take() else { return }
                pause = next
            }
        }
        state.withLock { $0.reader = reader }
    }

    /// - Returns: when to read again; `nil`: never.
    private func take() async -> Duration? {
        do {
            let reading = try await read()
            state.withLock { state in
                state.reading = reading
                state.isFailing = false
            }
            return reading.again
        } catch {
            let isNew = state.withLock { state in
                defer { state.isFailing = true }
                return !state.isFailing
            }
            if isNew { failed(error) }
            return afterFailure
        }
    }
}
