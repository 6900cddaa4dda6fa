import Synchronization

/// Renders a page for all who wait for it at once: one rendering at a time, and none that began before somebody asked
/// who gets it, so that nobody sees less than had happened then. While several ask, renderings keep a distance, which
/// leaves the machine to cheaper answers. Any thread.
final class SharedRendering<Page: Sendable>: Sendable {
    private struct State {
        var isRendering = false
        var waiting: [CheckedContinuation<Page, Never>] = []
    }

    private let state = Mutex(State())
    private let distance: Duration
    /// - Parameter distance: from one rendering's end to the next one's begin, while several ask.
    init(distance: Duration = .milliseconds(100)) { self.distance = distance }

    /// - Parameter render: does the same for everybody.
    /// - Returns: a page that was begun after the call.
    func page(_ render: @escaping @Sendable () async -> Page) async -> Page {
        await withCheckedContinuation { continuation in
            let isFirst = state.withLock { state in
                state.waiting.append(continuation)
                defer { state.isRendering = true }
                return !state.isRendering
            }
            if isFirst { Task { await renderAll(render) } }
        }
    }

    private func renderAll(_ render: @Sendable () async -> Page) async {
        while true {
            let served = state.withLock { state in
                defer { state.waiting = [] }
                return state.waiting
            }
            let page = await render()
            for reader in served { reader.resume(returning: page) }
            let isDone = state.withLock { state in
                if state.waiting.isEmpty { state.isRendering = false }
                return state.waiting.isEmpty
            }
            if isDone { return }
            try? await Task.sleep(for: distance)
        }
    }
}
