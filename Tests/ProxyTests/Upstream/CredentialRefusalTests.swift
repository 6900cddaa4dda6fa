import Proxy
import Reports
import TestSupport
import Testing

@Suite("an API that keeps refusing a credential is counted and reported", .stopsProxies, .timeLimit(.minutes(1)))
struct CredentialRefusalTests {
    /// Answers with the status in the path: `/401`.
    private static let byPath: RecordingOrigin.Handler = { exchange in
        try exchange.respond(Int(exchange.head.target.split(separator: "/").last ?? "") ?? 200, body: "x")
    }

    /// `key.test` has two keys, by path.
    private func proxy(_ observer: ProxyObserver = ProxyObserver(), upstream: String = "") async throws
        -> ProxyInProcess
    {
        try await ProxyInProcess(
            upstream: upstream,
            more: """
                - {host: key.test, paths: [/a], url: ORIGIN, allow_plaintext: true, inject: {header: X-Key, value: ka}}
                - {host: key.test, paths: [/b], url: ORIGIN, allow_plaintext: true, inject: {header: X-Key, value: kb}}
                """, observer: observer, answer: Self.byPath)
    }

    private func traffic(_ proxy: ProxyInProcess, _ name: String) async throws -> UpstreamTraffic {
        try #require(await proxy.server.traffic().upstreams.first { $0.name == name })
    }

    @Test(arguments: [401, 403])
    func `three refusals in a row of one key are reported once, for its own rule, until the API accepts it`(status: Int)
        async throws
    {
        let told = Recorder<CredentialRefusal>()
        var observer = ProxyObserver()
        observer.credentialRefused = { told.append($0) }
        let proxy = try await proxy(observer)
        func ask(_ path: String) async throws { _ = try await proxy.request("GET", "http://key.test\(path)") }
        // Neither another key's success nor an error that says nothing ends the row.
        for path in ["/a/\(status)", "/b/200", "/a/404", "/a/\(status)", "/a/500"] { try await ask(path) }
        #expect(try await traffic(proxy, "key.test").lastingRefusals.isEmpty)
        for _ in 0..<3 { try await ask("/a/\(status)") }
        try await eventually("five refusals") {
            try await self.traffic(proxy, "key.test").refused[status] == 5
        }
        let refused = try await traffic(proxy, "key.test").lastingRefusals
        #expect(refused.map(\.rule) == [1])
        #expect(refused.first?.refusals.inARow == 5)
        #expect(refused.first?.refusals.last?.status == status)
        #expect(told.all.map(\.status) == [status])
        #expect(told.all.map(\.rule) == [1])
        #expect(told.all.first?.injection == "X-Key: <secret>")
        try await ask("/a/200")
        try await eventually("the end of the row") {
            try await self.traffic(proxy, "key.test").lastingRefusals.isEmpty
        }
        #expect(try await traffic(proxy, "key.test").refused[status] == 5)
    }

    @Test func `a refused token counts, a program's own credential and the proxy's own 403 do not`() async throws {
        let proxy = try await proxy(upstream: "on_existing: keep\nmethods: [GET]")
        for _ in 0..<3 {
            _ = try await proxy.request("GET", "http://api.test/403", fields: ["Authorization: Basic eA=="])
        }
        for _ in 0..<3 { #expect(try await proxy.request("PUT", "http://api.test/").status == 403) }
        try await eventually("the own answers") { await proxy.server.traffic().refusals["not-covered"] == 3 }
        #expect(try await traffic(proxy, "api.test").refused.total == 0)
        for _ in 0..<3 { _ = try await proxy.request("GET", "http://api.test/403") }
        try await eventually("the refusals") {
            try await self.traffic(proxy, "api.test").lastingRefusals.first?.refusals.inARow == 3
        }
    }

    @Test(arguments: [(16, 401), (7, 403)])
    func `a gRPC call that is refused counts as 401 or 403, an accepted one ends the row`(refusal: Int, code: Int)
        async throws
    {
        let status = Recorder<Int>()
        let proxy = try await ProxyInProcess { try $0.status(status.all.last ?? refusal) }
        for _ in 0..<3 { _ = try await proxy.send(call()) }
        try await eventually("the refusals") {
            try await self.traffic(proxy, "api.test").lastingRefusals.first?.refusals.last?.status == code
        }
        status.append(0)
        _ = try await proxy.send(call())
        try await eventually("the end") { try await self.traffic(proxy, "api.test").lastingRefusals.isEmpty }
    }

    @Test func `every reason of the proxy's own answers has a count from the start on, and there are no others`()
        async throws
    {
        let proxy = try await proxy()
        let before = await proxy.server.traffic().refusals
        #expect(before.count > 50)
        #expect(before.values.allSatisfy { $0 == 0 })
        _ = try await proxy.request("GET", "http://unknown.test/")
        try await eventually("the refusal") { await proxy.server.traffic().refusals["no-upstream"] == 1 }
        #expect(await proxy.server.traffic().refusals.keys.sorted() == before.keys.sorted())
    }

    @Test func `an acceptance on one loop ends older refusals of another, and later ones stay`() {
        func record(_ inARow: UInt64, last: Int?, accepted: Int?) -> CredentialRefusals {
            var record = CredentialRefusals()
            record.inARow = inARow
            record.last = last.map { (401, .seconds($0)) }
            record.sinceAccepted = accepted.map { .seconds($0) }
            return record
        }
        var sum = record(4, last: 20, accepted: 60)
        sum.add(record(0, last: nil, accepted: 10))
        #expect(!sum.isLasting)
        sum = record(4, last: 20, accepted: 60)
        sum.add(record(2, last: 5, accepted: 30))
        #expect(sum == record(6, last: 5, accepted: 30))
        sum.add(CredentialRefusals())
        #expect(sum.inARow == 6)
    }
}
