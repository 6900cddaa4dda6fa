import Dispatch

/// Work that waits for a disk or a name: not on a loop, nor on the threads that `async` code shares.
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
