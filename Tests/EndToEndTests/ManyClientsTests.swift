import TestSupport
import Testing

@Suite("thousands of clients cost what their lines cost", .timeLimit(.minutes(10)))
struct ManyClientsTests {
    /// Starts a proxy with `count` clients, each with a token and an upstream that has had no request.
    private static func proxy(_ count: Int) async throws -> RunningProxy {
        let endpoint = try TokenEndpoint.plain()
        let names = (0..<count).map { "client-\($0)" }
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                admin: "", clients: names.map { ProxyConfiguration.client($0, tokenEndpoint: endpoint.url) },
                upstreams: names.map {
                    ProxyConfiguration.upstream("\($0).test", url: "http://127.0.0.1:1").replacing(
                        "client: api", with: "client: \($0)")
                }))
        _ = try await endpoint.requests(count, within: .seconds(240))
        try await eventually("each token is logged", within: .seconds(120)) {
            proxy.log.split(separator: "\n").count { $0.contains("token acquired") } == count
        }
        return proxy
    }

    private static func memory(_ count: Int) async throws -> Int {
        let proxy = try await proxy(count)
        return try await settled("its memory no longer changes", for: .milliseconds(300), within: .seconds(60)) {
            try proxy.process.anonymousMemory()
        }
    }

    @Test func `an idle client, its token and its upstream cost less than 32 KiB together`() async throws {
        let (few, many) = (50, 1050)
        let each = (try await Self.memory(many) - Self.memory(few)) / (many - few)
        #expect(each < 32 * 1024, "\(each) bytes")
    }
}
