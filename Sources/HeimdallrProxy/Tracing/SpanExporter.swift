import Logging
import Reports
import Synchronization
import Tracing

/// Gathers spans and sends them to one collector, a batch at a time. Whoever brings a span waits for nothing: what finds
/// no room is dropped and counted. Any thread; all that takes its time is done by one task.
final class SpanExporter: Sendable {
    /// So many wait at most, of so many bytes.
    static let mostWaiting = 2048
    static let mostBytes = 4 << 20
    /// So many go in one request.
    static let batch = 512
    /// For so long others are waited for, to go with the first.
    static let gathering = Duration.seconds(1)

    private struct State {
        var waiting = WaitingSpans<PendingSpan>(mostElements: mostWaiting, mostBytes: mostBytes)
        var isEnding = false
        var nap: Task<Void, Never>?
        /// What is waited for is a whole batch.
        var isGathering = false
        var task: Task<Void, Never>?
    }

    private let collector: Collector
    private let resource: [TraceSpan.Attribute]
    private let counts: SpanCounts
    private let logger: Logger
    private let state = Mutex(State())
    /// Has something when the first span comes, and at the end.
    private let bell: AsyncStream<Void>.Continuation

    init(_ collector: Collector, resource: [TraceSpan.Attribute], counts: SpanCounts, logger: Logger) {
        self.collector = collector
        self.resource = resource
        self.counts = counts
        self.logger = logger
        let (rings, bell) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.bell = bell
        let task = Task { await run(rings) }
        state.withLock { $0.task = task }
    }

    /// On a loop, too.
    func take(_ span: PendingSpan) {
        let loss: SpanReport.Loss? = state.withLock { state in
            guard !state.isEnding else { return .stopped }
            guard state.waiting.add(span, size: span.size) else { return .queueFull }
            if state.waiting.count == Self.batch, state.isGathering { state.nap?.cancel() }
            if state.waiting.count == 1 { bell.yield() }
            return nil
        }
        if let loss { counts.dropped(1, loss) }
    }

    /// Sends what is there, for so long at most; the rest is dropped.
    func finish(within limit: Duration) async {
        let task = state.withLock { state in
            state.isEnding = true
            state.nap?.cancel()
            return state.task
        }
        bell.finish()
        let timer = Task {
            try await Task.sleep(for: limit)
            task?.cancel()
        }
        await task?.value
        timer.cancel()
    }

    /// Drops what is there.
    func abandon() {
        let task = state.withLock { state in
            state.isEnding = true
            state.nap?.cancel()
            return state.task
        }
        task?.cancel()
        bell.finish()
    }

    // MARK: The task

    private func run(_ rings: AsyncStream<Void>) async {
        var course = Course()
        for await _ in rings {
            while !isEnding, !isEmpty {
                if count < Self.batch { await nap(for: Self.gathering, isGathering: true) }
                await send(takeBatch(), &course)
            }
        }
        while !course.isHeld, !Task.isCancelled, !isEmpty { await send(takeBatch(), &course) }
        let left = state.withLock { state in
            let left = state.waiting.count
            _ = state.waiting.take(atMost: left)
            return left
        }
        guard left > 0 else { return }
        counts.dropped(left, .stopped)
        logger.warning("spans were not exported before the end", metadata: ["spans": .stringConvertible(left)])
    }

    private var isEnding: Bool { state.withLock { $0.isEnding } }
    private var count: Int { state.withLock { $0.waiting.count } }
    private var isEmpty: Bool { count == 0 }
    private func takeBatch() -> [PendingSpan] { state.withLock { $0.waiting.take(atMost: Self.batch) } }

    /// Ends early when the exporter does.
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

    /// What is remembered from batch to batch.
    private struct Course {
        var patience = ExportPatience()
        /// The log was told that it fails.
        var isFailing = false
        /// Near the end: the collector does not want to be asked now, or is not there.
        var isHeld = false
        var lastRejection: ContinuousClock.Instant?
    }

    private func send(_ batch: [PendingSpan], _ course: inout Course) async {
        guard !batch.isEmpty else { return }
        let body = TracesRequest.bytes(
            batch.map(\.traceSpan), of: resource, scope: (name: "heimdallr-proxy", version: Version.number))
        while true {
            let answer = await collector.send(body)
            switch course.patience.ended(answer.outcome, random: .random(in: 0..<1)) {
            case .done: return taken(batch.count, answer, &course)
            case .again(let pause):
                failed(answer, &course)
                await nap(for: pause)
                // At the end there is one more try, but not for who has said when.
                guard isEnding, course.isHeld || answer.outcome.asksForPatience || Task.isCancelled else {
                    course.isHeld = isEnding
                    continue
                }
                course.isHeld = true
                return counts.dropped(batch.count, .stopped)
            case .drop(let pause):
                failed(answer, &course)
                counts.dropped(batch.count, answer.outcome.isRefusal ? .refused : .unreachable)
                await nap(for: pause)
                course.isHeld = isEnding
                return
            }
        }
    }

    // MARK: What came of it

    /// So often the log says that spans were rejected.
    private static let rejectionInterval = Duration.seconds(60)

    private func taken(_ count: Int, _ answer: Collector.Answer, _ course: inout Course) {
        let rejected = min(count, answer.rejected)
        counts.exported(count - rejected)
        counts.dropped(rejected, .rejected)
        if course.isFailing {
            course.isFailing = false
            logger.info(
                "spans are exported again",
                metadata: ["dropped_so_far": .stringConvertible(counts.report.allDropped)])
        }
        let now = ContinuousClock.now
        guard rejected > 0 || !answer.reason.isEmpty,
            course.lastRejection.map({ now - $0 > Self.rejectionInterval }) ?? true
        else { return }
        course.lastRejection = now
        logger.warning(
            rejected > 0 ? "the collector did not take some spans" : "the collector warns of something",
            metadata: [
                "collector": "\(collector.endpoint)", "rejected": .stringConvertible(rejected),
                "reason": "\(answer.reason)",
            ])
    }

    private func failed(_ answer: Collector.Answer, _ course: inout Course) {
        guard !course.isFailing else { return }
        course.isFailing = true
        logger.warning(
            "spans can't be exported",
            metadata: ["collector": "\(collector.endpoint)", "reason": "\(answer.reason)"])
    }
}

extension ExportPatience.Outcome {
    /// It has said when it wants to be asked again.
    fileprivate var asksForPatience: Bool {
        if case .answered(_, retryAfter: .some) = self { true } else { false }
    }

    /// To ask again would not help.
    fileprivate var isRefusal: Bool {
        switch self {
        case .answered(let status, _): ![429, 502, 503, 504].contains(status)
        case .unusable: true
        case .unreachable: false
        }
    }
}
