import Configuration
import CurlTransport
import Heimdallr
import Reactor
import Reports
import Synchronization

/// Makes and exports spans of requests and token requests, as configured. Any thread.
package final class Traces: Sendable {
    /// Makes the collector of a configuration. The collector's requests run on the loop.
    package typealias Connect = @Sendable (TracingSettings, _ trustAnchors: String?, EventLoop) -> Collector

    /// The tracing of one configuration.
    package struct Plan: Sendable {
        fileprivate var settings: TracingSettings?
        fileprivate var trustAnchors: String?
        fileprivate var exporter: SpanExporter?
        fileprivate var sampler = TraceSampler(share: 0)

        fileprivate static let none = Plan()
    }

    private struct State {
        var plan = Plan.none
        /// Separate loop of the exporters, so that a slow collector delays no request.
        var loop: EventLoop?
        /// Former configurations' exporters that still send spans.
        var leaving: [ObjectIdentifier: Task<Void, Never>] = [:]
        var wasConfigured = false
        /// Recorded requests that wait for a token, by client, in the order of their waits.
        var waiting: [String: [SpanContext]] = [:]
    }

    private let connect: Connect
    private let version: String
    private let notify: @Sendable (ExportNotice) -> Void
    private let counts = SpanCounts()
    private let state = Mutex(State())
    /// Identifier that distinguishes this process from others of the same service.
    private let instance: String

    /// Limit of `waiting` for each client. Only the first request becomes the parent of a token request.
    private static let mostWaiting = 16
    /// Time for sending the remaining spans to a former collector.
    private static let finishLimit = Duration.seconds(3)

    /// - Parameter version: version of the executable.
    package init(
        version: String, connect: @escaping Connect, notify: @escaping @Sendable (ExportNotice) -> Void
    ) {
        self.version = version
        self.connect = connect
        self.notify = notify
        instance = String(decoding: TraceID().text, as: UTF8.self)
    }

    /// Counters of spans; `nil` before tracing is configured for the first time.
    package var report: SpanReport? { state.withLock { $0.wasConfigured } ? counts.report : nil }

    // MARK: The configuration

    /// Prepares the tracing of a configuration, whose TLS files have been read. `use` starts the tracing.
    /// - Throws: `SystemError` if no thread or file descriptor is free.
    package func prepare(_ configuration: Configuration) throws(SystemError) -> Plan {
        guard let settings = configuration.tracing else { return .none }
        let anchors = configuration.trustAnchorsFile
        let (current, running) = state.withLock { ($0.plan, $0.loop) }
        var plan = Plan(
            settings: settings, trustAnchors: anchors, exporter: current.exporter,
            sampler: TraceSampler(share: settings.sample))
        if var former = current.settings, current.trustAnchors == anchors {
            former.sample = settings.sample
            if former == settings { return plan }
        }
        let loop = if let running { running } else { try EventLoop.start(name: "traces") }
        state.withLock { $0.loop = loop }
        plan.exporter = SpanExporter(
            connect(settings, anchors, loop),
            resource: [
                .init("service.name", .text(settings.serviceName)), .init("service.version", .text(version)),
                .init("service.instance.id", .text(instance)),
            ], scope: (name: "heimdallr-proxy", version: version), counts: counts, notify: notify)
        return plan
    }

    /// Begins to use the plan. A former exporter that the plan does not keep sends its remaining spans and ends.
    package func use(_ plan: Plan) {
        let former = state.withLock { state in
            let former = state.plan.exporter
            state.plan = plan
            if plan.exporter != nil { state.wasConfigured = true }
            return former
        }
        guard let former, former !== plan.exporter else { return }
        retire(former)
    }

    /// Releases a plan that will not be used.
    package func discard(_ plan: Plan) {
        guard let exporter = plan.exporter, exporter !== state.withLock({ $0.plan.exporter }) else { return }
        exporter.abandon()
    }

    private func retire(_ exporter: SpanExporter) {
        let id = ObjectIdentifier(exporter)
        let task = Task {
            await exporter.finish(within: Self.finishLimit)
            state.withLock { $0.leaving[id] = nil }
        }
        state.withLock { $0.leaving[id] = task }
    }

    /// Returns sampler and receivers for requests with this plan; `nil` without tracing.
    package func spans(_ plan: Plan) -> ExchangeSpans? {
        guard let exporter = plan.exporter else { return nil }
        return ExchangeSpans(
            sampler: plan.sampler, ended: { exporter.take(.exchange($0)) },
            waits: { [weak self] client, span, isWaiting in self?.waits(client, span, isWaiting) })
    }

    /// Sends the remaining spans for at most `limit`. Waits for former exporters, then ends.
    package func end(within limit: Duration) async {
        let (exporter, leaving, loop) = state.withLock { state in
            defer { state.plan = .none }
            return (state.plan.exporter, Array(state.leaving.values), state.loop)
        }
        await exporter?.finish(within: limit)
        for task in leaving { await task.value }
        loop?.stop()
    }

    /// Drops the remaining spans.
    package func abandon() { state.withLock { $0.plan.exporter }?.abandon() }

    // MARK: Token requests

    private func waits(_ client: String, _ span: SpanContext, _ isWaiting: Bool) {
        state.withLock { state in
            var spans = state.waiting[client] ?? []
            if isWaiting {
                if spans.count < Self.mostWaiting { spans.append(span) }
            } else if let index = spans.firstIndex(of: span) {
                spans.remove(at: index)
            }
            state.waiting[client] = spans.isEmpty ? nil : spans
        }
    }

    /// Records a finished token request. Its parent is the first recorded request that waits for this token. Without a
    /// parent, the token request begins a trace, and the sampler decides whether it is recorded.
    /// - Parameters:
    ///   - origin: origin of the token endpoint; `nil` if no request was sent.
    ///   - status: status of the answer.
    package func tokenRequested(_ report: TokenRequestReport, at origin: Origin?, status: Int?) {
        let (plan, parent) = state.withLock { ($0.plan, $0.waiting[report.client]?.first) }
        guard let exporter = plan.exporter else { return }
        guard parent != nil || plan.sampler.takes(.random(in: .min ... .max)) else { return }
        let span = parent.map { SpanContext(below: $0.traceParent, isRemote: false) } ?? SpanContext()
        exporter.take(.other(TraceSpan(span, report, origin: origin, status: status)))
    }
}
