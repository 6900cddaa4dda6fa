import Heimdallr

/// Runs checks side by side, and bounds the time of one.
enum Checks {
    /// Returns the results in the order of `items`. At most 16 checks run at a time.
    /// - Parameter progress: called with the number of checks that have ended.
    static func all<Item: Sendable, Result: Sendable>(
        _ items: [Item], progress: (Int) -> Void = { _ in }, _ check: @escaping @Sendable (Item) async -> Result
    ) async -> [Result] {
        await withTaskGroup(of: (Int, Result).self) { group in
            var results: [Int: Result] = [:]
            func note(_ ended: (index: Int, result: Result)) {
                results[ended.index] = ended.result
                progress(results.count)
            }
            for (index, item) in items.enumerated() {
                if index >= 16, let ended = await group.next() { note(ended) }
                group.addTask { (index, await check(item)) }
            }
            for await ended in group { note(ended) }
            return items.indices.compactMap { results[$0] }
        }
    }

    /// Returns `nil` when the work takes longer than `limit`. The work then continues, and its result is dropped.
    static func value<Value: Sendable>(
        within limit: Duration, of work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let (values, first) = AsyncStream<Value>.makeStream()
        let timer = Task {
            try? await Task.sleep(for: limit)
            first.finish()
        }
        Task {
            first.yield(await work())
            timer.cancel()
        }
        return await values.first { _ in true }
    }
}
