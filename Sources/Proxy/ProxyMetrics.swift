import Configuration
import Reactor
public import Reports

/// Request counters of one loop. Loop's thread only. The arrays have a fixed size, and counting takes no lock.
struct ProxyMetrics {
    static let codes = 100...599
    /// Upper bounds of the duration buckets, in nanoseconds.
    static let bounds: [UInt64] = [
        1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
    ].map { $0 * 1_000_000 }
    static let boundsInSeconds = bounds.map { Double($0) / 1e9 }

    private static let stride = codes.count
    private static let buckets = bounds.count + 1
    private static let statuses = UpstreamTraffic.otherCall + 1

    /// Returns the index of a gRPC call's counter.
    static func index(of status: GRPCStatus?) -> Int {
        status.map { min(Int($0.code), UpstreamTraffic.otherCall) } ?? UpstreamTraffic.otherCall
    }

    private(set) var inFlight = 0
    private(set) var requests: [UInt64]
    private(set) var durations: [UInt64]
    private(set) var nanoseconds: [UInt64]
    private(set) var sent: [UInt64]
    private(set) var received: [UInt64]
    private(set) var injections: [UInt64]
    /// gRPC calls by status.
    private(set) var calls: [UInt64]
    /// Counters of requests that the proxy answered without the upstream. The counters above include these requests.
    private(set) var answeredByProxy: [UInt64]
    private(set) var durationsByProxy: [UInt64]
    private(set) var ownNanoseconds: [UInt64]

    /// - Parameter slots: number of slots, from the layout.
    init(slots: Int) {
        requests = Array(repeating: 0, count: slots * Self.stride)
        durations = Array(repeating: 0, count: slots * Self.buckets)
        nanoseconds = Array(repeating: 0, count: slots)
        sent = Array(repeating: 0, count: slots)
        received = Array(repeating: 0, count: slots)
        injections = Array(repeating: 0, count: slots * InjectionResult.allCases.count)
        calls = Array(repeating: 0, count: slots * Self.statuses)
        answeredByProxy = requests
        durationsByProxy = durations
        ownNanoseconds = nanoseconds
    }

    mutating func requestStarted() { inFlight += 1 }

    struct Result {
        /// Status seen by the client; 0 for a cut answer, which counts as 499.
        var status: Int
        var duration: UInt64
        /// Bytes of the request's body.
        var sent: UInt64
        /// Bytes of the upstream's answer that went to the client.
        var received: UInt64
        var injection: InjectionResult?
        /// Whether the proxy answered without the upstream.
        var isOwn = false
        /// Index of a gRPC call's counter, by `index(of:)`; `nil` for other requests.
        var call: Int?
    }

    mutating func requestEnded(_ result: Result, slot: Int) {
        let (status, duration) = (result.status, result.duration)
        inFlight -= 1
        let code = status == 0 ? 499 : min(max(status, Self.codes.lowerBound), Self.codes.upperBound)
        requests[slot * Self.stride + code - Self.codes.lowerBound] &+= 1
        var bucket = 0
        while bucket < Self.bounds.count, duration > Self.bounds[bucket] { bucket += 1 }
        durations[slot * Self.buckets + bucket] &+= 1
        nanoseconds[slot] &+= duration
        if result.isOwn {
            answeredByProxy[slot * Self.stride + code - Self.codes.lowerBound] &+= 1
            durationsByProxy[slot * Self.buckets + bucket] &+= 1
            ownNanoseconds[slot] &+= duration
        }
        sent[slot] &+= result.sent
        received[slot] &+= result.received
        if let injection = result.injection {
            injections[slot * InjectionResult.allCases.count + injection.rawValue] &+= 1
        }
        if let call = result.call { calls[slot * Self.statuses + call] &+= 1 }
    }

    /// Counts bytes of a request that continues.
    mutating func moved(slot: Int, sent: UInt64, received: UInt64) {
        self.sent[slot] &+= sent
        self.received[slot] &+= received
    }

    func add(_ slot: Int, to traffic: inout UpstreamTraffic) {
        for index in 0..<Self.stride {
            let code = Self.codes.lowerBound + index
            traffic.requests[code] &+= requests[slot * Self.stride + index]
            traffic.answeredByProxy[code] &+= answeredByProxy[slot * Self.stride + index]
        }
        for bucket in 0..<Self.buckets {
            traffic.durations.add(durations[slot * Self.buckets + bucket], bucket: bucket)
            traffic.durationsByProxy.add(durationsByProxy[slot * Self.buckets + bucket], bucket: bucket)
        }
        traffic.durations.add(seconds: Double(nanoseconds[slot]) / 1e9)
        traffic.durationsByProxy.add(seconds: Double(ownNanoseconds[slot]) / 1e9)
        traffic.bytesSent &+= sent[slot]
        traffic.bytesReceived &+= received[slot]
        for status in 0..<Self.statuses { traffic.calls[status] &+= calls[slot * Self.statuses + status] }
        guard traffic.client != nil else { return }
        for result in InjectionResult.allCases {
            traffic.injections[result, default: 0] &+=
                injections[slot * InjectionResult.allCases.count + result.rawValue]
        }
    }
}

/// Maps upstreams to counters. A slot is an upstream of the configuration, or a group of requests without an upstream.
struct MetricsLayout: Sendable {
    /// Row of each slot: an index into `zeroTraffic`. Upstreams with the same host and client share a row.
    let rows: [Int]
    let zeroTraffic: [UpstreamTraffic]
    let unmatched: Int
    let noUpstream: Int
    let tunnels: Int

    init(_ configuration: Configuration) {
        var zeroTraffic: [UpstreamTraffic] = []
        var rows: [Int] = []
        for upstream in configuration.upstreams {
            let name = upstream.host.description
            let row = zeroTraffic.firstIndex { $0.name == name && $0.client == upstream.client }
            rows.append(row ?? zeroTraffic.count)
            if row == nil { zeroTraffic.append(Self.traffic(name, upstream.client)) }
        }
        unmatched = rows.count
        noUpstream = rows.count + 1
        tunnels = rows.count + 2
        let tunnelled: [TrafficGroup] = configuration.proxy.connect == .tunnel ? [.tunnels] : []
        for group in [.unmatched, .noUpstream] + tunnelled {
            rows.append(zeroTraffic.count)
            zeroTraffic.append(Self.traffic(group.rawValue, nil))
        }
        self.rows = rows
        self.zeroTraffic = zeroTraffic
    }

    var slots: Int { rows.count }

    private static func traffic(_ name: String, _ client: String?) -> UpstreamTraffic {
        UpstreamTraffic(name: name, client: client, bounds: ProxyMetrics.boundsInSeconds)
    }
}

extension ProxyServer {
    /// Returns after every loop has run a task.
    public func pulse() async {
        for shard in current.shards {
            await withCheckedContinuation { continuation in shard.loop.execute { continuation.resume() } }
        }
    }

    /// Returns the sum of all loops' counters. Must not be called after the loops stopped.
    public func traffic() async -> TrafficReport {
        var traffic = TrafficReport(upstreams: current.plan.layout.zeroTraffic)
        for shard in current.shards {
            let part = await withCheckedContinuation { continuation in
                shard.loop.execute { continuation.resume(returning: shard.value.traffic) }
            }
            traffic.inFlight += part.inFlight
            traffic.clients.open += part.clients.open
            traffic.clients.limit += part.clients.limit
            traffic.loops += part.loops
            for upstream in part.upstreams {
                // During a reload, another loop may already have the new configuration.
                guard let index = traffic.upstreams.firstIndex(where: { $0.isOf(upstream) }) else { continue }
                traffic.upstreams[index].add(upstream)
            }
        }
        return traffic
    }
}

extension UpstreamTraffic {
    /// Whether both count the same upstream and client.
    func isOf(_ other: UpstreamTraffic) -> Bool { name == other.name && client == other.client }
}
