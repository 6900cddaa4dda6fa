import TestSupport
import Testing

@Suite("redirects and cookies come home", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct RewritingTests {
    private static let everything: [(String, String)] = [
        ("location", "http://ORIGIN/t/x"), ("Content-Location", "/t/y"), ("Set-Cookie", "a=b; Secure; Path=/t/z"),
        ("Set-Cookie", "c=d; Domain=127.0.0.1"), ("Alt-Svc", "h3=\":443\""), ("X-Location", "http://ORIGIN/t/x"),
        ("Link", "<http://ORIGIN/t/x>"),
    ]

    private func fields(_ response: RawResponse) -> [String] {
        response.fields.map(\.description).filter { !$0.hasPrefix("Via") && !$0.hasPrefix("Content-Length") }
    }

    private func proxy(_ more: String = "", url: String = "/t", status: Int = 302) async throws -> ProxyInProcess {
        try await ProxyInProcess(upstream: "listen: 127.0.0.1:0\n\(more)", url: url) { exchange in
            let own = exchange.head.values("Host").first ?? ""
            try exchange.respond(
                status, fields: Self.everything.map { ($0.0, $0.1.replacing("ORIGIN", with: own)) }, body: "ok")
        }
    }

    @Test(arguments: [200, 201, 302, 404])
    func `a redirect through the proxy leads to the host that was asked for`(status: Int) async throws {
        let proxy = try await proxy(status: status)
        let own = proxy.origin.authority
        for host in ["api.test", "api.test:80", "API.TEST"] {
            let response = try await proxy.request("GET", "http://\(host)/a")
            #expect(
                fields(response) == [
                    "location: http://\(host.lowercased())/x", "Content-Location: /y", "Set-Cookie: a=b; Path=/z",
                    "Set-Cookie: c=d", "X-Location: http://\(own)/t/x", "Link: <http://\(own)/t/x>",
                ])
        }
    }

    @Test(arguments: ["127.0.0.1", "localhost", "[::1]"])
    func `a redirect at a base URL leads to the listener by the name that was used`(name: String) async throws {
        let proxy = try await proxy()
        let host = "\(name):\(proxy.upstreamPort)"
        let response = try await RawClient.exchange(
            port: proxy.upstreamPort, "GET /a HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        #expect(response.field("location") == "http://\(host)/x")
        #expect(response.field("Content-Location") == "/y")
        #expect(response.field("Set-Cookie") == "a=b; Path=/z, c=d")
        #expect(response.field("Alt-Svc") == nil)
    }

    @Test func `rewrite: false leaves redirects and cookies alone`() async throws {
        let proxy = try await proxy("rewrite: false")
        let own = proxy.origin.authority
        let response = try await proxy.request(fields: ["Destination: http://api.test/t/x"])
        #expect(fields(response) == Self.everything.map { "\($0.0): \($0.1.replacing("ORIGIN", with: own))" })
        #expect(proxy.origin.requests.first?.values("Destination") == ["http://api.test/t/x"])
        // The path goes as it is, so it has to be the upstream's.
        for value in ["http://api.test/x", "/x", "http://\(own)/x"] {
            try expectProblem(
                try await proxy.request("COPY", fields: ["Destination: \(value)"]), "destination-not-covered")
        }
    }

    @Test func `Host is the url's authority, or the program's own with host: keep`() async throws {
        let changed = try await proxy()
        #expect(try await changed.request("GET", "http://API.test/").status == 302)
        #expect(changed.origin.requests.first?.values("Host") == [changed.origin.authority])
        let kept = try await proxy("rewrite: {host: keep}")
        #expect(try await kept.request("GET", "http://API.test/").field("location") == "http://api.test/x")
        let host = "127.0.0.1:\(kept.upstreamPort)"
        let response = try await RawClient.exchange(
            port: kept.upstreamPort, "GET /a HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        #expect(response.field("location") == "http://\(host)/x")
        #expect(kept.origin.requests.map { $0.values("Host") } == [["api.test"], [host]])
    }

    @Test func `Destination names the upstream's own address, Referer and Origin stay`() async throws {
        let proxy = try await proxy("browsers: true")
        let host = "127.0.0.1:\(proxy.upstreamPort)"
        _ = try await RawClient.exchange(
            port: proxy.upstreamPort,
            "MOVE /a HTTP/1.1\r\nHost: \(host)\r\nDestination: http://\(host)/b%20c\r\nReferer: http://\(host)/r\r\n"
                + "Origin: http://\(host)\r\n\r\n", method: "MOVE")
        _ = try await proxy.request("COPY", "http://api.test/a", fields: ["Destination: http://api.test/b"])
        _ = try await proxy.request("COPY", "http://api.test/a", fields: ["destination: http://other.test/b"])
        let own = proxy.origin.authority
        let requests = proxy.origin.requests
        #expect(
            requests.map { $0.values("Destination") } == [
                ["http://\(own)/t/b%20c"], ["http://\(own)/t/b"], ["http://other.test/b"],
            ])
        #expect(requests.first?.values("Referer") == ["http://\(host)/r"])
        #expect(requests.first?.values("Origin") == ["http://\(host)"])
    }

    @Test(arguments: [
        ("", "http://api.test/../b"), ("", "/%2e%2e/b"), ("", "http://ORIGIN/other"), ("", "http://ORIGIN/t/../b"),
        ("paths: [/v1/]", "http://api.test/v2"), ("paths: [/v1/]", "/v1/..;/b"),
        ("paths: [/v1/]", "http://ORIGIN/t/v2"),
        ("", "http://u@ORIGIN/tenant-b/x"), ("", "../tenant-b/x"), ("paths: [/v1/]", "v2"), ("", "http:/tenant-b/x"),
        ("", "<http://ORIGIN/t/x>"), ("", "http://127.1/tenant-b"), ("", "http://localhost/tenant-b"),
    ])
    func `a Destination that leads out of the upstream's paths is refused`(more: String, destination: String)
        async throws
    {
        let proxy = try await proxy(more)
        let value = destination.replacing("ORIGIN", with: proxy.origin.authority)
        try expectProblem(
            try await proxy.request("COPY", "http://api.test/v1/a", fields: ["Destination: \(value)"]),
            "destination-not-covered")
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `hosts that nobody named keep their cookies; Alt-Svc ends here for them too`() async throws {
        let proxy = try await ProxyInProcess(proxy: "unmatched: forward\nprivate_networks: [127.0.0.0/8]") {
            try $0.respond(fields: [("Alt-Svc", "clear"), ("Set-Cookie", "a=b; Secure")], body: "ok")
        }
        let response = try await proxy.request("GET", proxy.origin.url + "/")
        #expect(fields(response) == ["Set-Cookie: a=b; Secure"])
    }

    @Test func `cookies of a handshake and fields of an early answer are rewritten, too`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 103 Early\r\nAlt-Svc: clear\r\nLink: </x>\r\n\r\n")
            try exchange.respond(body: "ok")
        }
        let client = try await proxy.connect(sending: message())
        let early = try await client.response()
        #expect(early.status == 103)
        #expect(early.fields.map(\.description) == ["Link: </x>"])
        #expect(try await client.response().status == 200)
    }
}
