import Configuration
import Reactor
import Reports

/// Request counters of one loop, by slot. Loop's thread only. Counting takes no lock.
struct ProxyMetrics {
    static let codes = 100...599
    /// Upper bounds of the duration buckets, in nanoseconds.
    static let bounds: [UInt64] = [
        1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
    ].map { $0 * 1_000_000 }
    static let boundsInSeconds = bounds.map { Double($0) / 1e9 }

    static func index(of status: GRPCStatus?) -> Int {
        status.map { min(Int($0.code), UpstreamTraffic.otherCall) } ?? UpstreamTraffic.otherCall
    }

    private(set) var inFlight = 0
    /// Counters of the slots that were used; `nil` for the others.
    private var counters: [TrafficCounters?]
    private let find: (Int) -> TrafficCounters

    /// - Parameters:
    ///   - slots: number of slots, from the layout.
    ///   - find: returns the counters of a slot, for its first request.
    init(slots: Int, find: @escaping (Int) -> TrafficCounters = { _ in TrafficCounters() }) {
        counters = Array(repeating: nil, count: slots)
        self.find = find
    }

    mutating func requestStarted() { inFlight += 1 }

    struct Result {
        /// Status seen by the program; 0 for a cut answer, which counts as 499.
        var status: Int
        var duration: UInt64
        /// Bytes of the request's body.
        var sent: UInt64
        /// Bytes of the upstream's answer that went to the program.
        var received: UInt64
        var injection: InjectionResult?
        /// Whether the proxy answered without the upstream.
        var isOwn = false
        /// Index of a gRPC call's counter, by `index(of:)`; `nil` for other requests.
        var call: Int?
        /// What the answer says of the credential that the proxy injected.
        var verdict = CredentialVerdict.none
    }

    mutating func requestEnded(_ result: Result, slot: Int) {
        inFlight -= 1
        of(slot).counts.add(result)
    }

    /// Counts bytes of a request that continues.
    mutating func moved(slot: Int, sent: UInt64, received: UInt64) {
        of(slot).counts.sent &+= sent
        of(slot).counts.received &+= received
    }

    mutating func of(_ slot: Int) -> TrafficCounters {
        if let known = counters[slot] { return known }
        let found = find(slot)
        counters[slot] = found
        return found
    }

    func add(_ slot: Int, to traffic: inout UpstreamTraffic) { counters[slot]?.add(to: &traffic) }
}

/// Maps upstreams to counters. A slot is an upstream of the configuration, or a group of requests without an upstream.
struct MetricsLayout: Sendable {
    /// Row of each slot: an index into `zeroTraffic`. Upstreams with the same host and client share a row.
    let rows: [Int]
    let zeroTraffic: [UpstreamTraffic]
    /// Row of each upstream and client.
    let rowOf: [TrafficKey: Int]
    /// Limit of connections of each row on one loop; `nil` for a row without connections.
    let limits: [Int?]
    let unmatched: Int
    let noUpstream: Int
    let tunnels: Int

    init(_ configuration: Configuration) {
        var zeroTraffic: [UpstreamTraffic] = []
        var rowOf: [TrafficKey: Int] = [:]
        var limits: [Int?] = []
        func row(_ name: String, _ client: String?, limit: Int?) -> Int {
            let key = TrafficKey(name: name, client: client)
            if let row = rowOf[key] {
                if let limit { limits[row] = (limits[row] ?? 0) + limit }
                return row
            }
            rowOf[key] = zeroTraffic.count
            limits.append(limit)
            zeroTraffic.append(
                UpstreamTraffic(name: name, client: client, bounds: ProxyMetrics.boundsInSeconds))
            return zeroTraffic.count - 1
        }
        var rows = configuration.upstreams.map {
            row($0.host.description, $0.client, limit: $0.maxConnections)
        }
        unmatched = rows.count
        noUpstream = rows.count + 1
        tunnels = rows.count + 2
        let isForwarding = configuration.proxy.unmatched == .forward
        rows.append(
            row(
                TrafficGroup.unmatched.rawValue, nil,
                limit: isForwarding ? UpstreamRule.unmatched.settings.maxConnections : nil))
        rows.append(row(TrafficGroup.noUpstream.rawValue, nil, limit: nil))
        if configuration.proxy.connect == .tunnel { rows.append(row(TrafficGroup.tunnels.rawValue, nil, limit: nil)) }
        self.rows = rows
        self.zeroTraffic = zeroTraffic
        self.rowOf = rowOf
        self.limits = limits
    }

    var slots: Int { rows.count }

    func key(ofRow row: Int) -> TrafficKey { TrafficKey(name: zeroTraffic[row].name, client: zeroTraffic[row].client) }
}
