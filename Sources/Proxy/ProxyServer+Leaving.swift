import Reactor
import Synchronization

// Stopping the proxy. During `proxy.drain_delay` the proxy still accepts, and each answer ends its connection. Then the
// proxy stops accepting and finishes its requests.
extension ProxyServer {
    enum Leaving {
        case notYet
        case waiting(Task<Void, any Error>)
        case over
    }

    /// Idle timeout of connections after the proxy stopped accepting.
    static let drainIdleTimeout = Duration.milliseconds(500)

    /// Serves for `delay`, then stops accepting, and ends requests that do not finish within `limit`. A connection
    /// closes after its next answer. After `delay`, it also closes if it is idle for `drainIdleTimeout`.
    public func drain(within limit: Duration, after delay: Duration = .zero) async {
        let shards = current.shards
        if delay > .zero {
            for shard in shards { shard.loop.execute { shard.value.leave() } }
            await pause(delay)
        }
        await withTaskGroup(of: Void.self) { group in
            for shard in shards {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        shard.loop.execute { shard.value.drain { continuation.resume() } }
                    }
                }
            }
            let timer = Task {
                try await Task.sleep(for: limit)
                for shard in shards { shard.loop.execute { shard.value.stop() } }
            }
            await group.waitForAll()
            timer.cancel()
        }
    }

    private func pause(_ time: Duration) async {
        let task = leaving.withLock { leaving -> Task<Void, any Error>? in
            if case .over = leaving { return nil }
            let task = Task { try await Task.sleep(for: time) }
            leaving = .waiting(task)
            return task
        }
        _ = await task?.result
    }

    /// Ends all requests, and the delay of `drain`, at once. Programs see cut answers.
    public func end() {
        leaving.withLock { leaving in
            if case .waiting(let task) = leaving { task.cancel() }
            leaving = .over
        }
        for shard in current.shards { shard.loop.execute { shard.value.stop() } }
    }
}
