import Synchronization

/// Calls a closure for one event of a client after the other. A task runs only while there are events: a stream with its
/// task would hold some 4 KiB for each client all the time. Any thread.
package final class EventObserver: Sendable {
    /// Number of unread events that are kept, the newest.
    static let backlog = 256

    private struct State {
        var unread: [HeimdallrEvent] = []
        /// Runs until `unread` is empty.
        var task: Task<Void, Never>?
        var isOver = false
    }

    private let observe: @Sendable (HeimdallrEvent) async -> Void
    private let state = Mutex(State())

    init(_ observe: @escaping @Sendable (HeimdallrEvent) async -> Void) { self.observe = observe }

    func tell(_ event: HeimdallrEvent) {
        state.withLock { state in
            guard !state.isOver else { return }
            if state.unread.count == Self.backlog { state.unread.removeFirst() }
            state.unread.append(event)
            if state.task == nil { state.task = Task.detached { [self] in await run() } }
        }
    }

    private func run() async { while let event = next() { await observe(event) } }

    private func next() -> HeimdallrEvent? {
        state.withLock { state in
            guard !state.unread.isEmpty else {
                (state.unread, state.task) = ([], nil)
                return nil
            }
            return state.unread.removeFirst()
        }
    }

    /// Whether a call is under way.
    package var isRunning: Bool { state.withLock { $0.task != nil } }

    /// Ignores further events, and cancels the task of those that came.
    package func cancel() {
        state.withLock { state in
            state.isOver = true
            state.task?.cancel()
        }
    }

    /// Returns after the last call. Call `cancel` first.
    package func ended() async { await state.withLock { $0.task }?.value }
}
