import Dispatch

/// Work that waits for a disk or a name: not on a loop, nor on the threads that `async` code shares.
enum BlockingWork {
    static func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "blocking").async { continuation.resume(returning: work()) }
        }
    }
}
