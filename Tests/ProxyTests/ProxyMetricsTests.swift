import Configuration
import HTTPMessage
import Reports
import Testing

@testable import Proxy

@Suite("counting")
struct ProxyMetricsTests {
    private func traffic(_ metrics: ProxyMetrics, _ slot: Int) -> UpstreamTraffic {
        var traffic = UpstreamTraffic(name: "x", client: "a", bounds: ProxyMetrics.boundsInSeconds)
        metrics.add(slot, to: &traffic)
        return traffic
    }

    @Test(arguments: [(100, 100), (200, 200), (599, 599), (0, 499), (-5, 100), (99, 100), (600, 599), (Int.max, 599)])
    func `every status has a counter, whatever an upstream answers`(status: Int, counted: Int) {
        var metrics = ProxyMetrics(slots: 2)
        metrics.requestStarted()
        metrics.requestEnded(.init(status: status, duration: 0, sent: 0, received: 0), slot: 1)
        #expect(traffic(metrics, 1).requests[counted] == 1)
        #expect(traffic(metrics, 1).requests.total == 1)
        #expect(traffic(metrics, 0).requests.total == 0)
        #expect(metrics.inFlight == 0)
    }

    @Test func `durations fall into the bucket whose bound they do not pass`() {
        var metrics = ProxyMetrics(slots: 1)
        for duration: UInt64 in [0, 1_000_000, 1_000_001, 60_000_000_000, 60_000_000_001, .max / 2] {
            metrics.requestStarted()
            metrics.requestEnded(
                .init(status: 200, duration: duration, sent: 1, received: 2, injection: .kept), slot: 0)
        }
        let traffic = traffic(metrics, 0)
        let counts = traffic.durations.counts
        #expect(counts.count == ProxyMetrics.bounds.count + 1)
        #expect(counts[0] == 2)
        #expect(counts[1] == 1)
        #expect(counts[counts.count - 2] == 1)
        #expect(counts[counts.count - 1] == 2)
        #expect((traffic.bytesSent, traffic.bytesReceived) == (6, 12))
        #expect(traffic.injections[.kept] == 6)
    }

    @Test func `upstreams that share host and client share their counters`() throws {
        var configuration = Configuration()
        for client in ["a", "a", "b", nil] {
            var upstream = UpstreamSettings(host: HostPattern(wildcard: false, host: .name("api.test"), port: nil))
            upstream.client = client
            configuration.upstreams.append(upstream)
        }
        let layout = MetricsLayout(configuration)
        #expect(layout.rows == [0, 0, 1, 2, 3, 4])
        #expect(layout.zeroTraffic.map(\.name) == ["api.test", "api.test", "api.test", "(unmatched)", "(none)"])
        #expect((layout.slots, layout.unmatched, layout.noUpstream) == (6, 4, 5))
    }
}
