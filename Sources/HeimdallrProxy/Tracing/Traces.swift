import Configuration
import CurlTransport
import Heimdallr
import Logging
import Proxy
import Reactor
import Reports
import Synchronization
import Tracing

/// Makes spans of what happens and has them exported, as the configuration in use says. Any thread.
final class Traces: Sendable {
    /// What one configuration makes of it.
    struct Plan: Sendable {
        fileprivate var settings: TracingSettings?
        fileprivate var trustAnchors: String?
        fileprivate var exporter: SpanExporter?
        fileprivate var sampler = TraceSampler(share: 0)

        fileprivate static let none = Plan()
    }

    private struct State {
        var plan = Plan.none
        /// What spans are sent on: a slow collector is no request's trouble.
        var loop: EventLoop?
        /// Exporters of configurations before.
        var leaving: [ObjectIdentifier: Task<Void, Never>] = [:]
        var hasBeen = false
        /// Requests that wait for a token, by client, first come first.
        var waiting: [String: [TraceMark]] = [:]
    }

    private let secrets: SecretShelf
    private let tls: TLSShelf
    private let logger: Logger
    private let counts = SpanCounts()
    private let state = Mutex(State())
    /// What tells this process from others of the same service.
    private let instance: String

    /// So many waiting requests are remembered for each client: the first one is the parent.
    private static let mostWaiting = 16
    /// How long a collector that is no longer configured is sent what is left.
    private static let farewell = Duration.seconds(3)

    init(secrets: SecretShelf, tls: TLSShelf, logger: Logger) {
        self.secrets = secrets
        self.tls = tls
        self.logger = logger
        let name = TraceMark.root().traceParent.text
        instance = String(decoding: (3..<35).map { name[$0] }, as: UTF8.self)
    }

    /// `nil`: there was never anything to count.
    var report: SpanReport? { state.withLock { $0.hasBeen } ? counts.report : nil }

    // MARK: The configuration

    /// Makes what a configuration wants; nothing changes yet. Its TLS files have been read.
    /// - Throws: `SystemError` when the kernel gives no thread or file descriptor.
    func prepare(_ configuration: Configuration) throws(SystemError) -> Plan {
        guard let settings = configuration.tracing else { return .none }
        let anchors = configuration.trustAnchorsFile
        let (current, running) = state.withLock { ($0.plan, $0.loop) }
        var plan = Plan(
            settings: settings, trustAnchors: anchors, exporter: current.exporter,
            sampler: TraceSampler(share: settings.sample))
        if let former = current.settings, former.isForSameCollector(as: settings), current.trustAnchors == anchors {
            return plan
        }
        let loop = if let running { running } else { try EventLoop.start(name: "traces") }
        state.withLock { $0.loop = loop }
        plan.exporter = SpanExporter(
            Collector(settings, trustAnchors: anchors, secrets: secrets, tls: tls, on: loop),
            resource: [
                .init("service.name", .text(settings.serviceName)), .init("service.version", .text(Version.number)),
                .init("service.instance.id", .text(instance)),
            ], counts: counts, logger: logger)
        return plan
    }

    /// From here on it is in use. The former exporter sends what it has.
    func use(_ plan: Plan) {
        let former = state.withLock { state in
            let former = state.plan.exporter
            state.plan = plan
            if plan.exporter != nil { state.hasBeen = true }
            return former
        }
        guard let former, former !== plan.exporter else { return }
        retire(former)
    }

    /// It is not used after all.
    func discard(_ plan: Plan) {
        guard let exporter = plan.exporter, exporter !== state.withLock({ $0.plan.exporter }) else { return }
        exporter.abandon()
    }

    private func retire(_ exporter: SpanExporter) {
        let id = ObjectIdentifier(exporter)
        let task = Task {
            await exporter.finish(within: Self.farewell)
            state.withLock { $0.leaving[id] = nil }
        }
        state.withLock { $0.leaving[id] = task }
    }

    /// For requests that begin with this plan; `nil`: there are no spans.
    func spans(_ plan: Plan) -> ExchangeSpans? {
        guard let exporter = plan.exporter else { return nil }
        return ExchangeSpans(
            sampler: plan.sampler, ended: { exporter.take(.exchange($0)) },
            waits: { [weak self] client, mark, isWaiting in self?.waits(client, mark, isWaiting) })
    }

    /// Sends what is left, for so long at most.
    func end(within limit: Duration) async {
        let (exporter, leaving, loop) = state.withLock { state in
            defer { state.plan = .none }
            return (state.plan.exporter, Array(state.leaving.values), state.loop)
        }
        await exporter?.finish(within: limit)
        for task in leaving { await task.value }
        loop?.stop()
    }

    /// Nothing is sent any more.
    func abandon() { state.withLock { $0.plan.exporter }?.abandon() }

    // MARK: Token requests

    private func waits(_ client: String, _ mark: TraceMark, _ isWaiting: Bool) {
        state.withLock { state in
            var marks = state.waiting[client] ?? []
            if isWaiting {
                if marks.count < Self.mostWaiting { marks.append(mark) }
            } else if let index = marks.firstIndex(of: mark) {
                marks.remove(at: index)
            }
            state.waiting[client] = marks.isEmpty ? nil : marks
        }
    }

    /// A token request has ended. It belongs to the first recorded request that waits for it; where none does, it begins a
    /// trace of its own, and lots are drawn for it as for any other.
    func tokenRequested(_ report: TokenRequestReport, _ last: TokenRequestNotes) {
        let (plan, parent) = state.withLock { ($0.plan, $0.waiting[report.client]?.first) }
        guard let exporter = plan.exporter else { return }
        let mark: TraceMark
        if let parent {
            mark = parent.child()
        } else {
            guard plan.sampler.takes(.random(in: .min ... .max)) else { return }
            mark = .root()
        }
        exporter.take(.other(TraceSpan(mark, report, url: last.current.url, status: last.status)))
    }
}

extension TracingSettings {
    /// Only what is recorded may differ.
    fileprivate func isForSameCollector(as other: TracingSettings) -> Bool {
        var mine = self
        mine.sample = other.sample
        return mine == other
    }
}
