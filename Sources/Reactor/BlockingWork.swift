import Dispatch

/// Runs work that takes long or waits, for example for a disk, outside the event loops and the threads that `async` code
/// shares.
public enum BlockingWork {
    public static func run<Value: Sendable, Failure>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await BlockingQueue().run(work)
    }
}

/// Runs such work one piece after the other.
public struct BlockingQueue: Sendable {
    private let queue = DispatchQueue(label: "blocking")

    public init() {}

    public func run<Value: Sendable, Failure>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Result { () throws(Failure) in try work() }) }
        }.get()
    }
}
