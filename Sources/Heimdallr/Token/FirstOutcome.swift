import Synchronization

/// Resumes one continuation with the first outcome; later ones are ignored.
package final class FirstOutcome<Value: Sendable>: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<Value, any Error>)
        /// The outcome came before the first waiter.
        case early(Result<Value, any Error>)
        case ended
    }

    private let state = Mutex(State.new)

    package init() {}

    package var hasEnded: Bool {
        state.withLock { state in
            switch state {
            case .ended, .early: true
            case .new, .waiting: false
            }
        }
    }

    package func await(_ continuation: CheckedContinuation<Value, any Error>) {
        let early: Result<Value, any Error>? = state.withLock { state in
            guard case .early(let result) = state else {
                state = .waiting(continuation)
                return nil
            }
            state = .ended
            return result
        }
        if let early { continuation.resume(with: early) }
    }

    /// Waits for the outcome that `begin` brings about, or for that of `alarm`.
    package static func wait(
        _ alarm: @escaping @Sendable () async -> Result<Value, any Error>, begin: (FirstOutcome) -> Void
    ) async throws -> Value {
        let outcome = FirstOutcome()
        let timer = Task.detached { outcome.end(await alarm()) }
        defer { timer.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            outcome.await(continuation)
            begin(outcome)
        }
    }

    /// - Returns: whether it was the first.
    @discardableResult
    package func end(_ result: Result<Value, any Error>) -> Bool {
        let (continuation, isFirst) = state.withLock { state -> (CheckedContinuation<Value, any Error>?, Bool) in
            switch state {
            case .new:
                state = .early(result)
                return (nil, true)
            case .waiting(let continuation):
                state = .ended
                return (continuation, true)
            case .early, .ended: return (nil, false)
            }
        }
        continuation?.resume(with: result)
        return isFirst
    }
}

/// Waits for `work`, but no longer than `limit`; it goes on by itself then.
package func waitBriefly(
    atMost limit: Duration, on clock: HeimdallrClock = .system, for work: @escaping @Sendable () async -> Void
) async {
    try? await FirstOutcome<Void>.wait {
        try? await clock.sleep(clock.now() + limit)
        return .success(())
    } begin: { outcome in
        Task {
            await work()
            outcome.end(.success(()))
        }
    }
}
