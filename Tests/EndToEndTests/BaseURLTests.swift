import TestSupport
import Testing

@Suite("an upstream's own listener", .timeLimit(.minutes(2)))
struct BaseURLTests {
    private func proxyAndOrigin(_ more: String = "") async throws -> ProxyAndOrigin {
        try await ProxyAndOrigin(path: "/base", upstream: "listen: 127.0.0.1:0\n\(more)", listeners: 2)
    }

    private func get(_ running: ProxyAndOrigin, host: String, _ fields: String...) async throws -> RawResponse {
        let lines = fields.map { "\($0)\r\n" }.joined()
        return try await RawClient.exchange(
            port: running.proxy.upstreamPort, "GET /x HTTP/1.1\r\nHost: \(host)\r\n\(lines)\r\n")
    }

    @Test func `takes loopback names, with the path of the url in front`() async throws {
        let running = try await proxyAndOrigin()
        for host in [
            "127.0.0.1:\(running.proxy.upstreamPort)", "localhost:\(running.proxy.upstreamPort)", "localhost",
            "[::1]:\(running.proxy.upstreamPort)",
        ] {
            #expect(try await get(running, host: host).status == 200)
        }
        #expect(running.origin.requests.map(\.line) == Array(repeating: "GET /base/x HTTP/1.1", count: 4))
        #expect(running.origin.requests.allSatisfy { $0.values("Authorization") == ["Bearer \(token)"] })
    }

    @Test(arguments: ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "api.test.evil.example", "10.0.0.1"])
    func `refuses a foreign Host, so that rebinding a name gains nothing`(host: String) async throws {
        let running = try await proxyAndOrigin()
        let response = try await get(running, host: host)
        #expect(response.status == 403)
        #expect(proxyError(of: response) == "http_request_denied")
        #expect(running.origin.requests.isEmpty)
    }

    @Test(arguments: [
        "Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site",
    ])
    func `refuses what a web page sent`(field: String) async throws {
        let running = try await proxyAndOrigin()
        let response = try await get(running, host: "127.0.0.1:\(running.proxy.upstreamPort)", field)
        #expect(response.status == 403)
        #expect(proxyError(of: response) == "http_request_denied")
        #expect(running.origin.requests.isEmpty)
    }

    @Test func `takes further names from hosts, and pages with browsers: true`() async throws {
        let running = try await proxyAndOrigin("hosts: [gateway.test]\nbrowsers: true")
        #expect(try await get(running, host: "gateway.test:\(running.proxy.upstreamPort)").status == 200)
        #expect(
            try await get(running, host: "localhost:\(running.proxy.upstreamPort)", "Origin: https://page.example")
                .status == 200)
        #expect(try await get(running, host: "evil.example").status == 403)
        #expect(running.origin.requests.count == 2)
    }
}
