import CurlTransport
import Reactor
public import Reports

/// Collects one loop's counters and connections, a few upstreams in each turn, so that no request waits for the
/// report of thousands of upstreams. Loop's thread only.
final class TrafficCollection {
    /// One loop's part of a report.
    struct Part: Sendable {
        /// Used rows, by their index in the layout.
        var rows: [Int: UpstreamTraffic] = [:]
        var inFlight = 0
        var programs: (open: Int, limit: Int) = (0, 0)
        var lag: (name: String, lag: Histogram)?
        var refusals: [String: UInt64] = [:]
    }

    /// Number of rows, or of upstreams' connections, in one turn.
    static let stride = 100

    private let shard: ProxyShard
    private let layout: MetricsLayout
    private let plans: [InstalledPlan]
    private(set) var part = Part()
    /// Next row; then the next upstream of the rules at `set`.
    private var next = 0
    private var set = -1
    /// Connection pools already added. Several rules may use the same pool.
    private var counted: Set<ObjectIdentifier> = []

    init(_ shard: ProxyShard, _ layout: MetricsLayout) {
        self.shard = shard
        self.layout = layout
        plans = shard.plansInUse
        part.inFlight = plans.reduce(0) { $0 + $1.metrics.inFlight }
        part.programs = shard.programs
        part.lag = shard.lag
        part.refusals = shard.counters.refusals
    }

    /// Does one turn's share of the work.
    /// - Returns: whether something is left.
    func step() -> Bool {
        let count = set < 0 ? layout.zeroTraffic.count : plans[set].places
        let end = min(count, next + Self.stride)
        for index in next..<end { set < 0 ? addRow(index) : addConnections(plans[set], index) }
        next = end
        guard end == count else { return true }
        next = 0
        set += 1
        return set < plans.count
    }

    private func addRow(_ row: Int) {
        guard let counters = shard.counters.used(layout.key(ofRow: row)) else { return }
        var traffic = layout.zeroTraffic[row]
        counters.add(to: &traffic)
        if layout.limits[row] != nil {
            var use = ConnectionUse()
            use.opened = counters.connections.opened
            use.reused = counters.connections.reused
            use.certificateEnd = counters.connections.certificateEnd
            traffic.connections = use
        }
        part.rows[row] = traffic
    }

    private func addConnections(_ installed: InstalledPlan, _ place: Int) {
        guard let upstream = installed.present(at: place) else { return }
        guard let row = layout.rowOf[installed.layout.key(ofRow: installed.layout.rows[place])] else { return }
        var traffic = part.rows[row] ?? layout.zeroTraffic[row]
        var use = traffic.connections ?? ConnectionUse()
        upstream.addConnections(to: &use, counted: &counted)
        traffic.connections = use
        if installed === shard.installed, let report = upstream.credentialRecord.report(at: shard.loop.now) {
            traffic.judgements[place] = report
        }
        part.rows[row] = traffic
    }
}

extension ProxyServer {
    /// Returns after every loop has run a task.
    public func pulse() async { for shard in current.shards { await shard.loop.turn {} } }

    /// Distinguishes this process's counts from those before a restart.
    private static let processNumber = UInt64(UInt32.random(in: 1 ... .max))

    /// Returns the last requests of all loops, the oldest first. Must not be called after the loops stopped.
    /// - Parameter seen: `counts` of an earlier report, for only the requests after it.
    public func recentRequests(after seen: [UInt64] = []) async -> RecentRequests {
        let shards = current.shards
        var report = RecentRequests()
        report.counts = [Self.processNumber]
        let isOurs = seen.count == shards.count + 1 && seen[0] == Self.processNumber
        for (index, shard) in shards.enumerated() {
            let count = isOurs ? seen[index + 1] : 0
            let former = report
            report = await shard.loop.turn {
                var report = former
                shard.value.addRequests(to: &report, after: count)
                return report
            }
        }
        report.requests.sort { $0.endedAt < $1.endedAt }
        let spare = report.requests.count - RecentRequests.most
        if spare > 0 {
            report.requests.removeFirst(spare)
            report.missed += UInt64(spare)
        }
        return report
    }

    /// Returns the sum of all loops' counters. Must not be called after the loops stopped.
    public func traffic() async -> TrafficReport {
        let (shards, layout) = (current.shards, current.plan.layout)
        var traffic = TrafficReport(upstreams: layout.zeroTraffic)
        traffic.refusals = Problem.noRefusals
        for (row, limit) in layout.limits.enumerated() {
            guard let limit else { continue }
            traffic.upstreams[row].connections = ConnectionUse()
            traffic.upstreams[row].connections?.limit = limit * shards.count
        }
        for shard in shards {
            let collection = await shard.loop.turn {
                LoopBound(TrafficCollection(shard.value, layout), on: shard.loop)
            }
            while await shard.loop.turn({ collection.value.step() }) {}
            let part = await shard.loop.turn { collection.value.part }
            traffic.inFlight += part.inFlight
            traffic.refusals.merge(part.refusals, uniquingKeysWith: &+)
            traffic.programs.open += part.programs.open
            traffic.programs.limit += part.programs.limit
            if let lag = part.lag { traffic.loops.append(lag) }
            for (row, counts) in part.rows { traffic.upstreams[row].add(counts) }
        }
        return traffic
    }
}

extension EventLoop {
    /// Runs `body` in a turn of the loop and waits for its result.
    func turn<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in execute { continuation.resume(returning: body()) } }
    }
}
