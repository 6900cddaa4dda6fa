import Reports
import Synchronization

/// Queues spans and sends them to one collector, one batch at a time. Callers never wait: when the queue is full, spans
/// are dropped and counted. Any thread; one task sends.
final class SpanExporter: Sendable {
    /// Limits of the queue, in spans and bytes.
    static let mostWaiting = 2048
    static let mostBytes = 4 << 20
    static let batch = 512
    /// Time to wait for more spans after the first span of a batch.
    static let gathering = Duration.seconds(1)

    private struct State {
        var waiting = WaitingSpans<PendingSpan>(mostElements: mostWaiting, mostBytes: mostBytes)
        var isEnding = false
        var nap: Task<Void, Never>?
        /// Whether the task waits for a whole batch. Then a full batch ends `nap`.
        var isGathering = false
        var task: Task<Void, Never>?
    }

    private let collector: Collector
    private let resource: [TraceSpan.Attribute]
    private let counts: SpanCounts
    private let scope: (name: String, version: String)
    private let notify: @Sendable (ExportNotice) -> Void
    private let state = Mutex(State())
    /// Wakes the task at the first span of a batch, and at the end.
    private let wakeUp: AsyncStream<Void>.Continuation

    init(
        _ collector: Collector, resource: [TraceSpan.Attribute], scope: (name: String, version: String),
        counts: SpanCounts, notify: @escaping @Sendable (ExportNotice) -> Void
    ) {
        self.collector = collector
        self.resource = resource
        self.scope = scope
        self.counts = counts
        self.notify = notify
        let (wakeUps, wakeUp) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.wakeUp = wakeUp
        let task = Task { await run(wakeUps) }
        state.withLock { $0.task = task }
    }

    /// Queues a span. May be called on a loop.
    func take(_ span: PendingSpan) {
        let loss: SpanReport.Loss? = state.withLock { state in
            guard !state.isEnding else { return .stopped }
            guard state.waiting.add(span, size: span.size) else { return .queueFull }
            if state.waiting.count == Self.batch, state.isGathering { state.nap?.cancel() }
            if state.waiting.count == 1 { wakeUp.yield() }
            return nil
        }
        if let loss { counts.dropped(1, loss) }
    }

    /// Sends queued spans for at most `limit`, then drops the rest.
    func finish(within limit: Duration) async {
        let task = beginEnding()
        wakeUp.finish()
        let timer = Task {
            try await Task.sleep(for: limit)
            task?.cancel()
        }
        await task?.value
        timer.cancel()
    }

    func abandon() {
        beginEnding()?.cancel()
        wakeUp.finish()
    }

    private func beginEnding() -> Task<Void, Never>? {
        state.withLock { state in
            state.isEnding = true
            state.nap?.cancel()
            return state.task
        }
    }

    // MARK: The task

    private func run(_ wakeUps: AsyncStream<Void>) async {
        var course = Course()
        for await _ in wakeUps {
            while !isEnding, !isEmpty {
                if count < Self.batch { await nap(for: Self.gathering, isGathering: true) }
                await send(takeBatch(), &course)
            }
        }
        while !course.failedAtEnd, !Task.isCancelled, !isEmpty { await send(takeBatch(), &course) }
        let left = state.withLock { $0.waiting.take(atMost: .max).count }
        guard left > 0 else { return }
        counts.dropped(left, .stopped)
        notify(.unsent(left))
    }

    private var isEnding: Bool { state.withLock { $0.isEnding } }
    private var count: Int { state.withLock { $0.waiting.count } }
    private var isEmpty: Bool { count == 0 }
    private func takeBatch() -> [PendingSpan] { state.withLock { $0.waiting.take(atMost: Self.batch) } }

    /// Sleeps until `time` is over or the exporter ends. If `isGathering`, a full batch also ends the sleep.
    private func nap(for time: Duration, isGathering: Bool = false) async {
        let nap: Task<Void, Never>? = state.withLock { state in
            guard !state.isEnding, !isGathering || state.waiting.count < Self.batch else { return nil }
            let nap = Task { _ = try? await Task.sleep(for: time) }
            state.nap = nap
            state.isGathering = isGathering
            return nap
        }
        await nap?.value
        state.withLock { state in
            state.nap = nil
            state.isGathering = false
        }
    }

    private struct Course {
        var retry = ExportRetry()
        /// Whether the present failure was logged.
        var isFailing = false
        /// Whether sending has failed since the exporter began to end. Then no further batch is sent.
        var failedAtEnd = false
        var lastRejection: ContinuousClock.Instant?
    }

    private func send(_ batch: [PendingSpan], _ course: inout Course) async {
        guard !batch.isEmpty else { return }
        let body = TracesRequest.bytes(batch.map(\.traceSpan), of: resource, scope: scope)
        while true {
            let answer = await collector.send(body)
            switch course.retry.ended(answer.outcome, random: .random(in: 0..<1)) {
            case .done: return taken(batch.count, answer, &course)
            case .again(let pause):
                failed(answer, &course)
                await nap(for: pause)
                // At the end, one failed batch gets one more attempt, unless the collector asked for a pause.
                guard isEnding, course.failedAtEnd || answer.outcome.asksForPatience || Task.isCancelled else {
                    course.failedAtEnd = isEnding
                    continue
                }
                course.failedAtEnd = true
                return counts.dropped(batch.count, .stopped)
            case .drop(let pause):
                failed(answer, &course)
                counts.dropped(batch.count, answer.outcome.isTemporary ? .unreachable : .refused)
                await nap(for: pause)
                course.failedAtEnd = isEnding
                return
            }
        }
    }

    // MARK: Outcomes

    /// Shortest time between two log lines about rejected spans.
    private static let rejectionInterval = Duration.seconds(60)

    private func taken(_ count: Int, _ answer: Collector.Answer, _ course: inout Course) {
        let rejected = min(count, answer.rejected)
        counts.exported(count - rejected)
        counts.dropped(rejected, .rejected)
        if course.isFailing {
            course.isFailing = false
            notify(.resumed(dropped: counts.report.allDropped))
        }
        let now = ContinuousClock.now
        guard rejected > 0 || !answer.reason.isEmpty,
            course.lastRejection.map({ now - $0 > Self.rejectionInterval }) ?? true
        else { return }
        course.lastRejection = now
        notify(.rejected(rejected, collector: collector.endpoint, reason: answer.reason))
    }

    private func failed(_ answer: Collector.Answer, _ course: inout Course) {
        guard !course.isFailing else { return }
        course.isFailing = true
        notify(.failing(collector: collector.endpoint, reason: answer.reason))
    }
}

/// An event of the exporter for the log.
package enum ExportNotice: Sendable {
    case failing(collector: String, reason: String)
    case resumed(dropped: UInt64)
    /// Number of spans that the collector rejected; 0 for a warning.
    case rejected(Int, collector: String, reason: String)
    /// Number of spans dropped at the end.
    case unsent(Int)
}

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
