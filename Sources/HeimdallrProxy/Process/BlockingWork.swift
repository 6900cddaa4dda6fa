import Dispatch

/// Runs work that waits, for example for a disk, outside the event loops and the threads that `async` code shares.
enum BlockingWork {
    static func run<Value: Sendable, Failure>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await withCheckedContinuation { continuation in
            DispatchQueue(label: "blocking").async {
                continuation.resume(returning: Result { () throws(Failure) in try work() })
            }
        }.get()
    }
}
