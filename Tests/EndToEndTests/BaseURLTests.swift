import TestSupport
import Testing

@Suite("an upstream's own listener", .timeLimit(.minutes(2)))
struct BaseURLTests {
    private func ground(_ more: String = "") async throws -> (
        origin: RecordingOrigin, endpoint: RecordingOrigin, proxy: RunningProxy, port: UInt16
    ) {
        let origin = try RecordingOrigin()
        let endpoint = try tokenEndpoint()
        let proxy = try await RunningProxy(
            configuration(
                tokenEndpoint: endpoint.url,
                upstreams: upstream(url: origin.url + "/base", more: "listen: 127.0.0.1:0\n\(more)")),
            listeners: 2)
        return (origin, endpoint, proxy, proxy.upstreamPort)
    }

    private func get(_ port: UInt16, host: String, _ fields: String...) async throws -> RawResponse {
        let lines = fields.map { "\($0)\r\n" }.joined()
        return try await RawClient.exchange(port: port, "GET /x HTTP/1.1\r\nHost: \(host)\r\n\(lines)\r\n")
    }

    @Test func `takes loopback names, with the path of the url in front`() async throws {
        let (origin, _endpoint, _, port) = try await ground()
        for host in ["127.0.0.1:\(port)", "localhost:\(port)", "localhost", "[::1]:\(port)"] {
            #expect(try await get(port, host: host).status == 200)
        }
        #expect(origin.requests.map(\.line) == Array(repeating: "GET /base/x HTTP/1.1", count: 4))
        #expect(origin.requests.allSatisfy { $0.values("Authorization") == ["Bearer \(token)"] })
        withExtendedLifetime(_endpoint) {}
    }

    @Test(arguments: ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "api.test.evil.example", "10.0.0.1"])
    func `refuses a foreign Host, so that rebinding a name gains nothing`(host: String) async throws {
        let (origin, _endpoint, _, port) = try await ground()
        let response = try await get(port, host: host)
        #expect(response.status == 403)
        #expect(proxyError(of: response) == "http_request_denied")
        #expect(origin.requests.isEmpty)
        withExtendedLifetime(_endpoint) {}
    }

    @Test(arguments: [
        "Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site",
    ])
    func `refuses what a web page sent`(field: String) async throws {
        let (origin, _endpoint, _, port) = try await ground()
        let response = try await get(port, host: "127.0.0.1:\(port)", field)
        #expect(response.status == 403)
        #expect(proxyError(of: response) == "http_request_denied")
        #expect(origin.requests.isEmpty)
        withExtendedLifetime(_endpoint) {}
    }

    @Test func `takes further names from hosts, and pages with browsers: true`() async throws {
        let (origin, _endpoint, _, port) = try await ground("hosts: [gateway.test]\nbrowsers: true")
        #expect(try await get(port, host: "gateway.test:\(port)").status == 200)
        #expect(try await get(port, host: "localhost:\(port)", "Origin: https://page.example").status == 200)
        #expect(try await get(port, host: "evil.example").status == 403)
        #expect(origin.requests.count == 2)
        withExtendedLifetime(_endpoint) {}
    }
}
