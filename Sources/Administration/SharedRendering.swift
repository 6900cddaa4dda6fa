import Synchronization

/// Renders a page once for all waiting callers. A caller never gets a page whose rendering began before the call.
/// Consecutive renderings have a pause between them, which leaves CPU time to cheaper answers. Any thread.
final class SharedRendering<Page: Sendable>: Sendable {
    private struct State {
        var isRendering = false
        var waiting: [CheckedContinuation<Page, Never>] = []
    }

    private let state = Mutex(State())
    private let distance: Duration
    /// - Parameter distance: pause between the end of a rendering and the start of the next.
    init(distance: Duration = .milliseconds(100)) { self.distance = distance }

    /// - Parameter render: the same for all callers.
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
