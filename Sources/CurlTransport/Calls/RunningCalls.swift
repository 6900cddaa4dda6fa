/// The calls of one client that run, and those that wait for one of these to end. Loop's thread only.
final class RunningCalls {
    private let most: Int
    private var running = 0
    private var waiting: [BufferedCall] = []
    private var isServing = false

    init(most: Int) { self.most = most }

    /// Dials for the call, at once or after others have ended.
    func begin(_ call: BufferedCall) {
        waiting.append(call)
        serve()
    }

    /// Ends a call that was begun.
    func end(_ call: BufferedCall) {
        let before = waiting.count
        waiting.removeAll { $0 === call }
        if waiting.count == before { running -= 1 }
        serve()
    }

    private func serve() {
        // A dial may fail at once, and then calls `end`.
        guard !isServing else { return }
        isServing = true
        while running < most, !waiting.isEmpty {
            running += 1
            waiting.removeFirst().dial()
        }
        isServing = false
    }
}
