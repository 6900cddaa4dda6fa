import CurlTransport
import Reports

/// Name of a row in the traffic report.
struct TrafficKey: Hashable, Sendable {
    let name: String
    let client: String?
}

/// Counters of one upstream and client on one loop, made for the first request. Loop's thread only.
final class TrafficCounters {
    struct Counts {
        var requests = CodeCounts()
        var durations = InlineArray<16, UInt64>(repeating: 0)
        var nanoseconds: UInt64 = 0
        var sent: UInt64 = 0
        var received: UInt64 = 0
        var injections = InlineArray<4, UInt64>(repeating: 0)
        /// gRPC calls by status.
        var calls = InlineArray<18, UInt64>(repeating: 0)
        /// Counters of requests that the proxy answered without the upstream. The counters above include these requests.
        var answeredByProxy = CodeCounts()
        var durationsByProxy = InlineArray<16, UInt64>(repeating: 0)
        var ownNanoseconds: UInt64 = 0
        /// Answers that refused the proxy's credential by 401, and by 403.
        var (unauthorized, forbidden): (UInt64, UInt64) = (0, 0)

        mutating func add(_ result: ProxyMetrics.Result) {
            let (status, duration) = (result.status, result.duration)
            let codes = ProxyMetrics.codes
            let code = status == 0 ? 499 : min(max(status, codes.lowerBound), codes.upperBound)
            requests.add(code)
            var bucket = 0
            while bucket < ProxyMetrics.bounds.count, duration > ProxyMetrics.bounds[bucket] { bucket += 1 }
            durations[bucket] &+= 1
            nanoseconds &+= duration
            if result.isOwn {
                answeredByProxy.add(code)
                durationsByProxy[bucket] &+= 1
                ownNanoseconds &+= duration
            }
            sent &+= result.sent
            received &+= result.received
            if let injection = result.injection { injections[injection.rawValue] &+= 1 }
            if let call = result.call { calls[call] &+= 1 }
            switch result.verdict {
            case .none, .accepted: break
            case .unauthorized: unauthorized &+= 1
            case .forbidden: forbidden &+= 1
            }
        }
    }

    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var counts = Counts()
    /// Any thread may read these.
    let connections = ConnectionCounts()

    func add(to traffic: inout UpstreamTraffic) {
        counts.requests.add(to: &traffic.requests)
        counts.answeredByProxy.add(to: &traffic.answeredByProxy)
        for bucket in counts.durations.indices {
            traffic.durations.add(counts.durations[bucket], bucket: bucket)
            traffic.durationsByProxy.add(counts.durationsByProxy[bucket], bucket: bucket)
        }
        traffic.refused[401] &+= counts.unauthorized
        traffic.refused[403] &+= counts.forbidden
        traffic.durations.add(seconds: Double(counts.nanoseconds) / 1e9)
        traffic.durationsByProxy.add(seconds: Double(counts.ownNanoseconds) / 1e9)
        traffic.bytesSent &+= counts.sent
        traffic.bytesReceived &+= counts.received
        for status in counts.calls.indices where counts.calls[status] > 0 {
            traffic.calls[status] &+= counts.calls[status]
        }
        guard traffic.client != nil else { return }
        for result in InjectionResult.allCases {
            traffic.injections[result, default: 0] &+= counts.injections[result.rawValue]
        }
    }
}

/// Counts by status code. The few codes that an upstream answers are found faster than in a table of all codes.
struct CodeCounts {
    private var rows: [(code: Int, count: UInt64)] = []

    mutating func add(_ code: Int) {
        for index in rows.indices where rows[index].code == code {
            rows[index].count &+= 1
            return
        }
        rows.append((code, 1))
    }

    func add(to counts: inout StatusCounts) { for row in rows { counts[row.code] &+= row.count } }
}

/// The counters of one loop. They continue when the rules change. Loop's thread only.
final class CounterTable {
    private var rows: [TrafficKey: TrafficCounters] = [:]
    /// The proxy's own answers by their reason.
    private(set) var refusals: [String: UInt64] = [:]

    func refused(_ reason: String) { refusals[reason, default: 0] &+= 1 }

    /// Returns a row's counters, which the first call makes.
    func counters(of key: TrafficKey) -> TrafficCounters {
        if let known = rows[key] { return known }
        let made = TrafficCounters()
        rows[key] = made
        return made
    }

    func used(_ key: TrafficKey) -> TrafficCounters? { rows[key] }

    /// Forgets the rows that a configuration does not have.
    func keep(_ layout: MetricsLayout) { rows = rows.filter { layout.rowOf[$0.key] != nil } }
}
