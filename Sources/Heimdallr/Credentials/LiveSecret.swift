import Synchronization

/// A secret that may change while the process runs. After a failed reading, the last good value stays. Any thread. A
/// reading never blocks the caller of `current`.
package final class LiveSecret: SecretProvider {
    package enum Schedule: Sendable, Equatable {
        /// The secret is constant.
        case never
        /// Reads for each token request, and on `refresh`.
        case eachTime
        /// Reads in the background at this interval. Callers get the last value.
        case every(Duration)
    }

    package enum Outcome: Sendable, Equatable {
        case unchanged
        /// A changed value, or the first good reading after a failed one (`isRecovery`).
        case taken(isRecovery: Bool)
        /// A failed reading. The last good value stays, if there is one. `isNew`: not the same fault as before.
        case failed(SecretProviderError, hasValue: Bool, isNew: Bool)
    }

    private struct State {
        var value: RestingSecret?
        var generation: UInt64 = 0
        var fault: SecretProviderError?
        var reading: Task<Void, Never>?
        var timer: Task<Void, Never>?
    }

    private let schedule: Schedule
    private let read: @Sendable () async throws -> Secret
    private let onOutcome: @Sendable (Outcome) -> Void
    private let state: Mutex<State>

    package init(_ secret: Secret) {
        schedule = .never
        read = { secret }
        onOutcome = { _ in }
        state = Mutex(State(value: RestingSecret(secret), generation: 1))
    }

    /// - Parameters:
    ///   - read: reads and checks the secret, and may take time. Of its errors, only a `SecretProviderError` is shown.
    ///   - onOutcome: called after each reading.
    package init(
        _ schedule: Schedule, read: @escaping @Sendable () async throws -> Secret,
        onOutcome: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        self.schedule = schedule
        self.read = read
        self.onOutcome = onOutcome
        state = Mutex(State())
        guard case .every(let interval) = schedule else { return }
        let timer = Task { [weak self] in
            // After a failed reading, reads again after 2 s, 4 s, 8 s and so on, up to `interval`.
            var pause = min(interval, .seconds(2))
            var left = interval
            while (try? await Task.sleep(for: pause)) != nil {
                guard let self else { return }
                left -= pause
                let wasFailing = fault != nil
                if wasFailing || left <= .zero {
                    await refresh()
                    left = interval
                }
                pause = fault == nil ? left : min(wasFailing ? pause * 2 : .seconds(2), interval)
            }
        }
        state.withLock { $0.timer = timer }
    }

    deinit { state.withLock { $0.timer?.cancel() } }

    /// Returns a copy of the last good value; `nil` before the first. Never waits. Reuse it until `generation` changes.
    package func current() -> Secret? { state.withLock { $0.value }?.opened }

    /// Number of the current value; 0: none was read yet.
    package var generation: UInt64 { state.withLock { $0.generation } }

    package var fault: SecretProviderError? { state.withLock { $0.fault } }

    /// Returns the last good value. Reads the secret first if the schedule is `eachTime`, or if nothing was read yet.
    /// - Throws: `SecretProviderError` if there is no good value.
    package func secret() async throws -> Secret {
        switch schedule {
        case .never: break
        case .eachTime: await take()
        // After a failure only the timer tries again.
        case .every: await reading(onlyFirst: true)?.value
        }
        return try state.withLock { state in
            guard let value = state.value?.opened else {
                throw state.fault ?? SecretProviderError("the secret was not read")
            }
            return value
        }
    }

    /// Reads the secret again. Concurrent callers wait for the same reading.
    package func refresh() async { await reading()?.value }

    /// Returns the reading that is under way, or begins one; `nil` for a constant secret.
    /// - Parameter onlyFirst: returns `nil` once a reading has ended.
    private func reading(onlyFirst: Bool = false) -> Task<Void, Never>? {
        state.withLock { state in
            if schedule == .never || onlyFirst && (state.value != nil || state.fault != nil) { return nil }
            if let reading = state.reading { return reading }
            let reading = Task {
                await take()
                self.state.withLock { $0.reading = nil }
            }
            state.reading = reading
            return reading
        }
    }

    private func take() async {
        do {
            let secret = try await read()
            let outcome = state.withLock { state -> Outcome in
                let isRecovery = state.fault != nil
                state.fault = nil
                guard state.value?.opened != secret else { return isRecovery ? .taken(isRecovery: true) : .unchanged }
                state.value = RestingSecret(secret)
                state.generation += 1
                return .taken(isRecovery: isRecovery)
            }
            onOutcome(outcome)
        } catch {
            let fault = error as? SecretProviderError ?? SecretProviderError("the secret could not be read")
            let (hasValue, isNew) = state.withLock { state in
                defer { state.fault = fault }
                return (state.value != nil, state.fault != fault)
            }
            onOutcome(.failed(fault, hasValue: hasValue, isNew: isNew))
        }
    }
}
