import Synchronization

/// A value that is read at start and then read again at intervals, off the loops. When a reading fails, the last good
/// value stays. Any thread.
final class FreshValue<Value: Sendable>: Sendable {
    struct Reading: Sendable {
        var value: Value
        /// Time after which the value must not be used; `nil` without such a time.
        var ends: ContinuousClock.Instant?
        /// Time until the next reading; `nil` if no reading follows.
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
    ///   - afterFailure: pause after a failed reading.
    ///   - failed: called for the first of consecutive failures.
    init(
        afterFailure: Duration = .seconds(1), read: @escaping @Sendable () async throws -> Reading,
        failed: @escaping @Sendable (any Error) -> Void
    ) {
        self.read = read
        self.failed = failed
        self.afterFailure = afterFailure
    }

    deinit { state.withLock { $0.reader?.cancel() } }

    /// Returns the value without waiting; `nil` if it could not be read yet or has expired.
    func current() -> Value? {
        state.withLock { state in
            guard let reading = state.reading else { return nil }
            if let ends = reading.ends, ends <= .now { return nil }
            return reading.value
        }
    }

    /// Waits for the first reading, then begins the periodic readings. Returns also if the first reading failed.
    func start() async {
        guard var pause = await readOnce() else { return }
        let reader = Task { [weak self] in
            while (try? await Task.sleep(for: pause)) != nil {
                guard let next = await self?.readOnce() else { return }
                pause = next
            }
        }
        state.withLock { $0.reader = reader }
    }

    /// - Returns: time until the next reading; `nil` if no reading follows.
    private func readOnce() async -> Duration? {
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
