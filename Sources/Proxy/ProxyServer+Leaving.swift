import Reactor
import Synchronization

// How the proxy stops. First whoever comes is still served, each with the last answer of its connection, while new ones are
// led elsewhere; then nobody is accepted any more, and what is under way is finished.
extension ProxyServer {
    enum Leaving {
        case notYet
        case waiting(Task<Void, any Error>)
        case over
    }

    /// How long a connection must have had no request before a proxy that stops closes it.
    static let farewell = Duration.milliseconds(500)
    /// From leading new connections to another process until nobody is accepted here: who was connecting has arrived, on
    /// long ways too.
    private static let arrival = Duration.milliseconds(500)

    /// Whether another process listens at the same addresses. Reads a file.
    public var isShared: Bool { groups.contains { $0.isShared } }

    private var groups: [PortGroup] { current.plan.listeners.compactMap(\.group) }

    /// Serves whoever comes for `delay`, then stops accepting, lets requests finish for `limit`, and ends the rest.
    /// A connection closes behind its next answer, or when it had none for `farewell`.
    public func drain(within limit: Duration, after delay: Duration = .zero) async {
        let shards = currentShards
        let steered = groups.count { $0.steerAway() } > 0
        let wait = max(delay, steered ? Self.arrival : .zero)
        if wait > .zero {
            for shard in shards { shard.loop.execute { shard.value.leave() } }
            await pause(wait)
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

    /// Ends what is under way, in the middle of it: what was cut can't look whole. Nobody is waited for any more.
    public func end() {
        leaving.withLock { leaving in
            if case .waiting(let task) = leaving { task.cancel() }
            leaving = .over
        }
        for shard in currentShards { shard.loop.execute { shard.value.stop() } }
    }
}
