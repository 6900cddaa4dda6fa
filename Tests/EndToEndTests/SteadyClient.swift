import Synchronization
import TestSupport

/// One request after the other on one connection, each answered by 200, until it is stopped.
final class SteadyClient: Sendable {
    private struct Progress {
        var served = 0
        var failure: (any Error)?
        var isStopped = false
    }
    private let progress = Mutex(Progress())
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(_ proxy: RunningProxy) {
        let port = proxy.port
        let task = Task { [weak self] in
            do {
                let request = "GET http://api.test/fine HTTP/1.1\r\nHost: api.test\r\n\r\n"
                var client = try await RawClient.connect(port: port, sending: request)
                while let self {
                    let answer = try await client.response()
                    guard answer.status == 200, answer.text == "fine" else { throw TestFailure("\(answer)") }
                    let answered = ContinuousClock.now
                    guard
                        self.progress.withLock({ progress in
                            progress.served += 1
                            return !progress.isStopped
                        })
                    else { return }
                    // Time itself: the pace of a client that is not in a hurry.
                    try await Task.sleep(for: .milliseconds(10))
                    // A client that is silent for a second may lose its place to waiting ones. Under load the pause may be that long.
                    if ContinuousClock.now - answered > .milliseconds(500) {
                        client = try await RawClient.connect(port: port, sending: request)
                    } else {
                        try await client.send(request)
                    }
                }
            } catch {
                self?.progress.withLock { $0.failure = error }
            }
        }
        self.task.withLock { $0 = task }
    }

    deinit { progress.withLock { $0.isStopped = true } }

    /// Waits until that many more were served from now on.
    func serves(_ count: Int) async throws {
        let before = progress.withLock { $0.served }
        try await eventually("\(count) more requests are served", within: .seconds(30)) {
            try self.progress.withLock {
                if let failure = $0.failure { throw failure }
                return $0.served > before + count
            }
        }
    }

    /// - Throws: all failures so far.
    func stop() async throws {
        progress.withLock { $0.isStopped = true }
        await task.withLock { $0 }?.value
        if let failure = progress.withLock({ $0.failure }) { throw failure }
    }
}
