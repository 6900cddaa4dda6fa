import Configuration
import Foundation
import HTTPMessage
import Reactor
import Reports
import TestSupport
import Testing

@testable import Proxy

/// Work on a loop is counted, not timed: it must not grow with the number of upstreams that were never used.
@Suite("thousands of upstreams hold no loop, and cost what was used", .timeLimit(.minutes(2)), .stopsProxies)
struct ManyUpstreamsTests {
    private static let many = 3000

    private static let more = (0..<many).map { number in
        "- {host: 'many-\(number).test', url: ORIGIN, allow_plaintext: true, http2: false}"
    }.joined(separator: "\n")

    private func proxy(_ change: (inout Configuration) -> Void = { _ in }) async throws -> ProxyInProcess {
        try await ProxyInProcess(more: Self.more, change: change)
    }

    private func onShard<Value: Sendable>(
        _ proxy: ProxyInProcess, _ body: @escaping @Sendable (ProxyShard) -> Value
    ) async throws -> Value {
        let shard = proxy.server.current.shards[0]
        return try await shard.loop.run { body(shard.value) }
    }

    private func reload(_ proxy: ProxyInProcess, _ change: (inout Configuration) -> Void) async throws {
        var configuration = proxy.server.current.plan.configuration
        change(&configuration)
        _ = try await proxy.server.change(
            to: configuration, clients: ["api": proxy.client], observer: ProxyObserver())
    }

    @Test func `an upstream without a request has neither connections nor counters`() async throws {
        let proxy = try await proxy()
        #expect(try await onShard(proxy) { $0.installed.upstreams.count } == 0)
        #expect(try await proxy.request("GET", "http://many-7.test/").status == 200)
        #expect(try await onShard(proxy) { $0.installed.upstreams.map(\.rule.name) } == ["many-7.test"])
        let counted = try await onShard(proxy) { shard in
            let layout = shard.installed.layout
            return (0..<layout.zeroTraffic.count).filter { shard.counters.used(layout.key(ofRow: $0)) != nil }.count
        }
        #expect(counted == 1)
    }

    @Test func `the report is collected in turns that each look at a hundred upstreams`() async throws {
        let proxy = try await proxy()
        #expect(try await proxy.request("GET", "http://many-2999.test/").status == 200)
        let shard = proxy.server.current.shards[0]
        let steps = try await shard.loop.run {
            let collection = TrafficCollection(shard.value, shard.value.installed.layout)
            var steps = 1
            while collection.step() { steps += 1 }
            return steps
        }
        // Rows, and then places of connections.
        #expect(steps >= 2 * Self.many / TrafficCollection.stride)
        let report = await proxy.server.traffic()
        let used = report.upstreams.filter { $0.requests.total > 0 }
        #expect(used.map(\.name) == ["many-2999.test"])
        #expect(used.first?.connections?.opened == 1)
        #expect(used.first?.connections?.limit == 256)
    }

    @Test func `requests are answered between two turns of a report`() async throws {
        let proxy = try await proxy()
        let shard = proxy.server.current.shards[0]
        let collection = try await shard.loop.run {
            LoopBound(TrafficCollection(shard.value, shard.value.installed.layout), on: shard.loop)
        }
        #expect(try await shard.loop.run { collection.value.step() })
        #expect(try await proxy.request("GET", "http://many-1.test/").status == 200)
        #expect(try await shard.loop.run { collection.value.step() })
    }

    @Test func `a reload makes no upstream, and keeps connections and counters of those in use`() async throws {
        let proxy = try await proxy()
        let client = try await proxy.connect()
        func get() async throws -> Int {
            try await client.send(message("GET", "http://many-5.test/"))
            return try await client.response().status
        }
        #expect(try await get() == 200)
        // The upstreams move, one is changed, and one is gone.
        try await reload(proxy) { configuration in
            configuration.upstreams.swapAt(10, 2000)
            configuration.upstreams[20].responseTimeout = .seconds(3)
            configuration.upstreams.remove(at: 3)
        }
        #expect(try await onShard(proxy) { $0.installed.upstreams.map(\.rule.name) } == ["many-5.test"])
        #expect(try await get() == 200)
        #expect(proxy.origin.connections.count == 1)
        let report = await proxy.server.traffic()
        #expect(report.upstreams.first { $0.name == "many-5.test" }?.requests.total == 2)
        #expect(report.upstreams.first { $0.name == "many-5.test" }?.connections?.opened == 1)
    }

    @Test func `rules that are over release few upstreams in a turn`() async throws {
        let proxy = try await proxy()
        let client = try await proxy.connect()
        for number in 0..<(3 * InstalledPlan.releaseStride) {
            try await client.send(message("GET", "http://many-\(number).test/"))
            #expect(try await client.response().status == 200)
        }
        let former = try await onShard(proxy) { shard in LoopBound(shard.installed, on: shard.loop) }
        try await reload(proxy) { $0.upstreams.removeLast(Self.many) }
        let sizes = Recorder<Int>()
        Self.recordEachTurn(former, sizes)
        try await eventually("the former rules are over") { sizes.all.last == 0 }
        #expect(sizes.all.first == 3 * InstalledPlan.releaseStride)
        for (before, after) in zip(sizes.all, sizes.all.dropFirst()) {
            #expect(before - after <= InstalledPlan.releaseStride)
        }
        try await eventually("their connections are closed") { proxy.origin.connections.allSatisfy(\.isOver) }
    }

    /// Records in each turn how many upstreams the rules have, until there is none.
    private static func recordEachTurn(_ plan: LoopBound<InstalledPlan>, _ sizes: Recorder<Int>) {
        plan.loop.execute {
            let count = plan.value.upstreams.count
            if sizes.all.last != count { sizes.append(count) }
            if count > 0 { recordEachTurn(plan, sizes) }
        }
    }

    @Test func `upstreams are found again wherever they went`() throws {
        let settings = (0..<50).map { number in
            UpstreamSettings(host: HostPattern(wildcard: false, host: .name("h\(number / 2).test"), port: nil))
        }
        var changed = settings
        for index in changed.indices { changed[index].paths = ["/\(index)"] }
        #expect(UpstreamPlan.matches(of: changed, in: settings) == Array(repeating: nil, count: 50))
        #expect(UpstreamPlan.matches(of: changed, in: changed) == Array(0..<50))
        #expect(UpstreamPlan.matches(of: changed.reversed(), in: changed) == Array((0..<50).reversed()))
        #expect(UpstreamPlan.matches(of: Array(changed[20...]), in: changed) == Array(20..<50))
        #expect(UpstreamPlan.matches(of: changed, in: Array(changed[20...])).compactMap(\.self) == Array(0..<30))
    }
}
