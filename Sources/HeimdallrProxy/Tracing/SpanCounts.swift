import Reports
import Synchronization

/// Counts exported and lost spans of all collectors. Any thread.
final class SpanCounts: Sendable {
    private let state = Mutex(SpanReport())

    var report: SpanReport { state.withLock { $0 } }

    func exported(_ count: Int) { state.withLock { $0.exported &+= UInt64(count) } }

    func dropped(_ count: Int, _ loss: SpanReport.Loss) {
        guard count > 0 else { return }
        state.withLock { $0.dropped[loss, default: 0] &+= UInt64(count) }
    }
}
