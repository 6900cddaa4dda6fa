import Synchronization

/// Resumes one continuation with the first outcome. Ignores later outcomes.
package final class FirstOutcome<Value: Sendable>: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<Value, any Error>)
        /// The outcome came before the continuation.
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

    /// Calls `begin`, and waits for its outcome or that of `alarm`, whichever comes first.
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

    /// Ends with `result`. Returns whether this was the first outcome.
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

/// Waits for `work`, but no longer than `limit`. After that, the work goes on in the background.
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
