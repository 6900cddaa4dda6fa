import Synchronization

/// Limits concurrent work. Any thread.
final class ConcurrencyLimit: Sendable {
    private let free: Mutex<Int>

    init(_ most: Int) { free = Mutex(most) }

    /// - Returns: `nil` at the limit.
    func run<Value>(_ work: () async -> Value) async -> Value? {
        let isAdmitted = free.withLock { free in
            guard free > 0 else { return false }
            free -= 1
            return true
        }
        guard isAdmitted else { return nil }
        defer { free.withLock { $0 += 1 } }
        return await work()
    }
}
