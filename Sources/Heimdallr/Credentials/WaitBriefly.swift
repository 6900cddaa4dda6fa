/// Waits for `work`, but no longer than `limit`; it goes on by itself then.
package func waitBriefly(atMost limit: Duration, for work: @escaping @Sendable () async -> Void) async {
    let (end, signal) = AsyncStream<Void>.makeStream()
    Task {
        await work()
        signal.finish()
    }
    let timer = Task {
        try? await Task.sleep(for: limit)
        signal.finish()
    }
    for await _ in end {}
    timer.cancel()
}
