import TestSupport
import Testing

@Suite("an upstream's own listener", .timeLimit(.minutes(2)))
struct BaseURLTests {
    /// What must live as long as a test.
    private struct Ground {
        let origin: RecordingOrigin
        let endpoint: RecordingOrigin
        let proxy: RunningProxy
        var port: UInt16 { proxy.upstreamPort }
    }

    private func ground(_ more: String = "") async throws -> Ground {
        let origin = try RecordingOrigin()
        let endpoint = try tokenEndpoint()
        let proxy = try await RunningProxy(
            configuration(
                tokenEndpoint: endpoint.url,
                upstreams: upstream(url: origin.url + "/base", more: "listen: 127.0.0.1:0\n\(more)")),
            listeners: 2)
        return Ground(origin: origin, endpoint: endpoint, proxy: proxy)
    }

    private func get(_ ground: Ground, host: String, _ fields: String...) async throws -> RawResponse {
        let lines = fields.map { "\($0)\r\n" }.joined()
        return try await RawClient.exchange(port: ground.port, "GET /x HTTP/1.1\r\nHost: \(host)\r\n\(lines)\r\n")
    }

    @Test func `takes loopback names, with the path of the url in front`() async throws {
        let ground = try await ground()
        for host in ["127.0.0.1:\(ground.port)", "localhost:\(ground.port)", "localhost", "[::1]:\(ground.port)"] {
            #expect(try await get(ground, host: host).status == 200)
        }
        #expect(ground.origin.requests.map(\.line) == Array(repeating: "GET /base/x HTTP/1.1", count: 4))
        #expect(ground.origin.requests.allSatisfy { $0.values("Authorization") == ["Bearer \(token)"] })
    }

    @Test(arguments: ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "api.test.evil.example", "10.0.0.1"])
    func `refuses a foreign Host, so that rebinding a name gains nothing`(host: String) async throws {
        let ground = try await ground()
        let response = try await get(ground, host: host)
        #expect(response.status == 403)
        #expect(proxyError(of: response) == "http_request_denied")
        #expect(ground.origin.requests.isEmpty)
    }

    @Test(arguments: [
        "Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site",
    ])
    func `refuses what a web page sent`(field: String) async throws {
        let ground = try await ground()
        let response = try await get(ground, host: "127.0.0.1:\(ground.port)", field)
        #expect(response.status == 403)
        #expect(proxyError(of: response) == "http_request_denied")
        #expect(ground.origin.requests.isEmpty)
    }

    @Test func `takes further names from hosts, and pages with browsers: true`() async throws {
        let ground = try await ground("hosts: [gateway.test]\nbrowsers: true")
        #expect(try await get(ground, host: "gateway.test:\(ground.port)").status == 200)
        #expect(try await get(ground, host: "localhost:\(ground.port)", "Origin: https://page.example").status == 200)
        #expect(try await get(ground, host: "evil.example").status == 403)
        #expect(ground.origin.requests.count == 2)
    }
}
