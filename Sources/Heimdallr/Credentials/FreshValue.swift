package import FileSystem
import Synchronization

/// A value that is read again while the process runs: when asked, and when its last reading says. After a failed reading,
/// the last good value stays. Any thread. A reading never blocks the caller of `current`.
package final class FreshValue<Value: Sendable>: Sendable {
    package typealias Good = LastGood<Value, SecretProviderError>
    package typealias Reading = Good.Reading

    @usableFromInline struct State {
        @usableFromInline var good: Good
        var reading: Task<Void, Never>?
        var timer: Task<Void, Never>?
    }

    private let read: (@Sendable () async throws -> Reading)?
    private let retry: (first: Duration, most: Duration)?
    private let isSame: @Sendable (Value, Value) -> Bool
    private let onOutcome: @Sendable (ReadingOutcome<SecretProviderError>) -> Void
    @usableFromInline let state: Mutex<State>

    /// A constant value.
    package init(_ value: Value) {
        read = nil
        retry = nil
        isSame = { _, _ in false }
        onOutcome = { _ in }
        state = Mutex(State(good: Good(value)))
    }

    /// - Parameters:
    ///   - retry: pause after a failed reading, and the limit of its doubling; `nil`: only a caller starts the next reading.
    ///   - isSame: whether the second value is no news after the first.
    ///   - read: reads and checks the value, and may take time. Of its errors, only a `SecretProviderError` is shown.
    ///   - onOutcome: called after each reading.
    package init(
        retry: (first: Duration, most: Duration)? = nil,
        isSame: @escaping @Sendable (Value, Value) -> Bool = { _, _ in false },
        read: @escaping @Sendable () async throws -> Reading,
        onOutcome: @escaping @Sendable (ReadingOutcome<SecretProviderError>) -> Void
    ) {
        self.read = read
        self.retry = retry
        self.isSame = isSame
        self.onOutcome = onOutcome
        state = Mutex(State(good: Good()))
    }

    deinit { state.withLock { $0.timer?.cancel() } }

    /// Returns the last good value without waiting; `nil` before the first, and after its end.
    @inlinable package func current() -> Value? { state.withLock { $0.good.current() } }

    /// Number of the current value; 0: none was read yet.
    package var generation: UInt64 { state.withLock { $0.good.generation } }

    package var fault: SecretProviderError? { state.withLock { $0.good.fault } }

    /// Waits for the first reading. Returns also if it fails. Later readings follow as the first one says.
    package func start() async { await reading(onlyFirst: true)?.value }

    /// Reads the value again. Concurrent callers wait for the same reading.
    package func refresh() async { await reading()?.value }

    /// Reads the value for this caller alone, so that the content is no older than the call.
    package func readAnew() async {
        guard let read else { return }
        let outcome: ReadingOutcome<SecretProviderError>
        do {
            let next = try await read()
            outcome = state.withLock { state in
                let known = state.good.value.map { isSame($0, next.value) } ?? false
                return note(state.good.take(next, isSame: known), &state)
            }
        } catch {
            let fault = error as? SecretProviderError ?? SecretProviderError("the secret could not be read")
            outcome = state.withLock { note($0.good.fail(fault), &$0) }
        }
        onOutcome(outcome)
    }

    private func note(
        _ outcome: ReadingOutcome<SecretProviderError>, _ state: inout State
    ) -> ReadingOutcome<SecretProviderError> {
        state.timer?.cancel()
        state.timer = state.good.pause(retry: retry).map { pause in
            Task { [weak self] in
                guard (try? await Task.sleep(for: pause)) != nil else { return }
                await self?.refresh()
            }
        }
        return outcome
    }

    /// Returns the reading that is under way, or begins one; `nil` for a constant value.
    /// - Parameter onlyFirst: returns `nil` once a reading has ended.
    private func reading(onlyFirst: Bool = false) -> Task<Void, Never>? {
        state.withLock { state in
            if read == nil || onlyFirst && state.good.wasRead { return nil }
            if let reading = state.reading { return reading }
            let reading = Task {
                await readAnew()
                self.state.withLock { $0.reading = nil }
            }
            state.reading = reading
            return reading
        }
    }
}
