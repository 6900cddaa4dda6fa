import TestSupport
import Testing

@Suite("an upstream's own listener is its base URL", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct ListenerTests {
    private func proxy(_ more: String = "", url: String = "") async throws -> ProxyInProcess {
        try await ProxyInProcess(upstream: "listen: 127.0.0.1:0\n\(more)", url: url)
    }

    private func get(_ proxy: ProxyInProcess, _ target: String = "/x", host: String?, _ fields: String...) async throws
        -> RawResponse
    {
        let lines = (host.map { ["Host: \($0)"] } ?? []) + fields
        return try await RawClient.exchange(
            port: proxy.upstreamPort,
            "GET \(target) HTTP/1.\(host == nil ? 0 : 1)\r\n\(lines.map { $0 + "\r\n" }.joined())\r\n")
    }

    @Test(arguments: [
        "127.0.0.1:PORT", "localhost:PORT", "LOCALHOST", "api.localhost:PORT", "[::1]:PORT", "127.8.9.1", nil,
    ])
    func `an upstream's own listener takes every request for its upstream`(host: String?) async throws {
        let proxy = try await proxy(url: "/base")
        let host = host?.replacing("PORT", with: "\(proxy.upstreamPort)")
        #expect(try await get(proxy, "/x?y", host: host).status == 200)
        #expect(try await get(proxy, "http://\(host ?? "localhost")/abs", host: host).status == 200)
        let requests = proxy.origin.requests
        #expect(requests.map(\.target) == ["/base/x?y", "/base/abs"])
        #expect(requests.allSatisfy { $0.authorization == ["Bearer T1"] })
        #expect(requests.allSatisfy { $0.values("Host") == [proxy.origin.authority] })
    }

    @Test(arguments: [
        "evil.example", "evil.example:PORT", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "api.test",
        "api.test.evil.example",
        "[::2]", "0.0.0.0:PORT", "128.0.0.1",
    ])
    func `an upstream's own listener refuses a foreign Host, so that rebinding a name gains nothing`(host: String)
        async throws
    {
        let proxy = try await proxy()
        let host = host.replacing("PORT", with: "\(proxy.upstreamPort)")
        let response = try await get(proxy, host: host)
        try expectProblem(response, "foreign-host", upstream: nil)
        #expect(response.field("Connection") == "close")
        try expectProblem(try await get(proxy, "http://\(host)/", host: "localhost"), "foreign-host", upstream: nil)
        #expect(proxy.origin.requests.isEmpty)
        #expect(proxy.endpoint.requests.isEmpty)
    }

    @Test(arguments: [
        "Origin: https://evil.example", "Origin: null", "Origin:", "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: same-origin", "sec-fetch-site: x",
        // A redirect's target for a typed address, or for one clicked in a mail.
        "Sec-Fetch-Site: none",
        // All that is left of a browser where the name is not loopback to it.
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0",
        "user-agent: Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko",
    ])
    func `an upstream's own listener refuses requests that a web page sent`(field: String) async throws {
        let proxy = try await proxy()
        try expectProblem(try await get(proxy, host: "localhost", field), "web-page", upstream: nil)
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test(arguments: [
        "curl/7.88.1", "", "Geck", "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1",
        "python-requests/2.32.3",
    ])
    func `an upstream's own listener takes each name by which programs call it`(agent: String) async throws {
        let proxy = try await proxy()
        #expect(try await get(proxy, host: "localhost", "User-Agent: \(agent)", "Sec-Fetch-Mode: cors").status == 200)
    }

    @Test(arguments: [
        ("10.9.8.7:PORT", 200), ("[2001:db8::1]:PORT", 200), ("10.9.8.7:1", 403), ("evil.example:PORT", 403),
        ("0.0.0.0.evil.example:PORT", 403),
    ])
    func `a listener on all addresses takes each of them as Host, but no name`(host: String, status: Int) async throws {
        let proxy = try await ProxyInProcess(upstream: "listen: 0.0.0.0:0", proxy: "open: true")
        let host = host.replacing("PORT", with: "\(proxy.upstreamPort)")
        #expect(try await get(proxy, host: host).status == status)
    }

    @Test func `an upstream's own listener takes further names from hosts, and pages with browsers: true`() async throws
    {
        let proxy = try await proxy("hosts: [gateway.test, \"other.test:81\"]\nbrowsers: true")
        #expect(try await get(proxy, host: "Gateway.test:\(proxy.upstreamPort)").status == 200)
        #expect(try await get(proxy, host: "other.test:81", "Origin: https://page.example").status == 200)
        #expect(try await get(proxy, host: "other.test").status == 403)
        #expect(try await get(proxy, host: "evil.example").status == 403)
    }

    @Test func `the upstream's paths and methods hold at its own listener, too`() async throws {
        let proxy = try await proxy("paths: [/v1/]\nmethods: [GET]")
        #expect(try await get(proxy, "/v1/x", host: "localhost").status == 200)
        try expectProblem(try await get(proxy, "/v2", host: "localhost"), "not-covered", upstream: nil)
        try expectProblem(try await get(proxy, "/v1/../v2", host: "localhost"), "ambiguous-path", upstream: nil)
    }

    @Test func `the proxy's own listener serves no upstream's base URL`() async throws {
        let proxy = try await proxy()
        #expect(try await proxy.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 403)
        #expect(proxy.origin.requests.isEmpty)
    }
}
