import Synchronization

/// Blocking work that nobody waits for longer than so long; then it goes on unheard.
enum Bounded {
    static func run<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable () -> Value
    ) async -> Value? {
        await withCheckedContinuation { continuation in
            let first = First(continuation)
            let timer = Task {
                if (try? await Task.sleep(for: limit)) != nil { first.give(nil) }
            }
            Task {
                first.give(await BlockingWork.run(work))
                timer.cancel()
            }
        }
    }

    /// Only the first answer counts.
    private final class First<Value: Sendable>: Sendable {
        private let waiting: Mutex<CheckedContinuation<Value?, Never>?>

        init(_ continuation: CheckedContinuation<Value?, Never>) { waiting = Mutex(continuation) }

        func give(_ value: Value?) {
            let continuation = waiting.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            continuation?.resume(returning: value)
        }
    }
}
