import TestSupport
import Testing

@Suite(
    "what is asked for decides where it goes, and the target passes byte for byte", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct TargetTests {
    @Test(arguments: [
        ("GET http://api.test/a?b=c HTTP/1.1\r\nHost: api.test\r\n\r\n", "/a?b=c"),
        ("GET HTTP://API.Test/a HTTP/1.1\r\nHost: api.test\r\n\r\n", "/a"),
        ("GET http://api.test:80/a HTTP/1.1\r\nHost: api.test:80\r\n\r\n", "/a"),
        ("GET http://api.test. HTTP/1.1\r\nHost: api.test\r\n\r\n", "/"),
        ("GET http://api.test?x HTTP/1.1\r\nHost: api.test\r\n\r\n", "/?x"),
        // Absolute-form wins over Host (RFC 9112, section 3.2.2).
        ("GET http://api.test/a HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n", "/a"),
        ("GET /a?b HTTP/1.1\r\nHost: api.test\r\n\r\n", "/a?b"),
        ("GET /a HTTP/1.1\r\nHost: API.TEST:80\r\n\r\n", "/a"),
        ("OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n", "*"),
        ("OPTIONS http://api.test HTTP/1.1\r\nHost: api.test\r\n\r\n", "*"),
        ("GET /a HTTP/1.0\r\nHost: api.test\r\n\r\n", "/a"),
    ])
    func `a target in either form finds its upstream`(request: String, target: String) async throws {
        let proxy = try await ProxyInProcess()
        #expect(try await proxy.send(request).status == 200)
        let received = try #require(proxy.origin.requests.first)
        #expect(received.target == target)
        #expect(received.values("Host") == [proxy.origin.authority])
        #expect(received.authorization == ["Bearer T1"])
        #expect(proxy.origin.problems == [])
    }

    @Test(arguments: [
        "/a%2Fb%2fc", "//a///b", "/a/../b/./c", "/%2e%2e/a", "/a;x=1;y", "/a?x=%zz&y=a|b{}^`<>\"[]", "/a??b?c=/../",
        "/%",
        "/a%00b", "/a?", "/~a!$&'()*+,;=:@", "/a?x=\\y", "/%C3%A9", "/a%252fb",
    ])
    func `path and query pass byte for byte`(target: String) async throws {
        let proxy = try await ProxyInProcess()
        #expect(try await proxy.request("GET", "http://api.test\(target)").status == 200)
        #expect(proxy.origin.requests.map(\.target) == [target])
    }

    @Test(arguments: [
        ("http://api.test/x?y", "/base/v1/x?y"), ("http://api.test", "/base/v1/"), ("http://api.test?q", "/base/v1/?q"),
        ("http://api.test/a//x%2F", "/base/v1/a//x%2F"),
    ])
    func `a path in url is put in front of the target, as it stands`(url: String, target: String) async throws {
        let proxy = try await ProxyInProcess(url: "/base/v1")
        #expect(try await proxy.request("GET", url).status == 200)
        #expect(proxy.origin.requests.map(\.target) == [target])
    }

    @Test(arguments: [
        ("one.wild.test", 200), ("a.b.wild.test", 200), ("ONE.wild.test", 200), ("wild.test", 403),
        ("onewild.test", 403), ("wild.test.evil.test", 403), ("special.wild.test", 201), ("x.special.wild.test", 200),
        ("one.wild.test:443", 200), ("one.wild.test:8080", 403),
    ])
    func `a wildcard stands for one label or more, and an exact host wins over it`(host: String, status: Int)
        async throws
    {
        let proxy = try await ProxyInProcess(
            more: "- {host: '*.wild.test', url: ORIGIN/wild}\n- {host: special.wild.test, url: ORIGIN/special}"
        ) { try $0.respond($0.head.target.hasPrefix("/special") ? 201 : 200) }
        #expect(try await proxy.request("GET", "http://\(host)/").status == status)
        #expect(proxy.origin.requests.allSatisfy { $0.authorization.isEmpty })
    }

    private static let ruled = "paths: [/v1/, /v2/public]\nmethods: [GET, POST]"
    private static let narrower = "- {host: api.test, url: ORIGIN/admin-leg, paths: [/v1/admin]}"

    @Test(arguments: [
        ("GET", "/v1/x", "/v1/x"), ("GET", "/v1", "/v1"), ("GET", "/v1?x", "/v1?x"),
        ("POST", "/v2/public/y", "/v2/public/y"),
        ("GET", "/v1/admin", "/admin-leg/v1/admin"), ("DELETE", "/v1/admin/x", "/admin-leg/v1/admin/x"),
        ("GET", "/v1/administrator", "/v1/administrator"),
    ])
    func `the longest path that covers a request wins`(method: String, path: String, target: String) async throws {
        let proxy = try await ProxyInProcess(upstream: Self.ruled, more: Self.narrower)
        let response = try await proxy.request(
            method, "http://api.test\(path)", body: method == "POST" ? "x" : nil)
        #expect(response.status == 200)
        #expect(proxy.origin.requests.map(\.target) == [target])
        #expect(proxy.origin.requests.map(\.authorization) == [target.hasPrefix("/admin-leg") ? [] : ["Bearer T1"]])
    }

    @Test(arguments: [
        ("GET", "/"), ("GET", "/v10"), ("GET", "/v2/"), ("GET", "/V1/x"), ("DELETE", "/v1/x"), ("get", "/v1/x"),
    ])
    func `a path or method that no rule covers is refused, never forwarded`(method: String, path: String) async throws {
        let proxy = try await ProxyInProcess(
            upstream: Self.ruled, proxy: "unmatched: forward\nprivate_networks: [127.0.0.0/8]", more: Self.narrower)
        try expectProblem(try await proxy.request(method, "http://api.test\(path)"), "not-covered", upstream: nil)
        #expect(proxy.origin.requests.isEmpty)
        #expect(proxy.endpoint.requests.isEmpty)
    }

    @Test(arguments: [
        "/v1/../v1/admin", "/v1/%2e%2e/admin", "/v1//admin", "/v1/;/admin", "/v1%2fadmin", "/v1/%61dmin",
        "/v1/x%5cadmin",
        "/v1/..;/admin", "/v1/%252e%252e/", "/v1/.",
    ])
    func `where paths decide, a target that can be read in two ways is refused`(path: String) async throws {
        let proxy = try await ProxyInProcess(upstream: Self.ruled, more: Self.narrower)
        try expectProblem(try await proxy.request("GET", "http://api.test\(path)"), "ambiguous-path", upstream: nil)
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `the connection goes on after a refusal that left nothing unread`() async throws {
        let proxy = try await ProxyInProcess(upstream: "paths: [/v1/]")
        let client = try await proxy.connect()
        for (path, status) in [("/v1/..", 400), ("/v2", 403), ("/v1/", 200), ("/", 403), ("/v1", 200)] {
            try await client.send(message("GET", "http://api.test\(path)"))
            #expect(try await client.response().status == status, "\(path)")
        }
    }

    @Test(arguments: [
        ("GET / HTTP/1.0\r\n\r\n", 400, "host-missing"),
        ("GET ftp://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", 400, "malformed-request"),
        ("GET http://user@api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", 400, "malformed-request"),
        ("GET http://api.test/#x HTTP/1.1\r\nHost: api.test\r\n\r\n", 400, "malformed-request"),
        ("GET https://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", 400, "scheme-not-supported"),
        ("GET * HTTP/1.1\r\nHost: api.test\r\n\r\n", 400, "malformed-request"),
        ("GET /a b HTTP/1.1\r\nHost: api.test\r\n\r\n", 400, "malformed-request"),
        ("GET / HTTP/1.1\r\nHost: api.test\r\nHost: api.test\r\n\r\n", 400, "malformed-request"),
        ("GET / HTTP/2.0\r\nHost: api.test\r\n\r\n", 505, "malformed-request"),
        (
            "POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400, "malformed-request"
        ),
    ])
    func `a malformed target is refused, its connection closed, and nothing sent`(
        request: String, status: Int, slug: String
    ) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(sending: request)
        let response = try await client.response()
        try expectProblem(response, slug, status: status, upstream: slug.hasPrefix("scheme") ? "api.test" : nil)
        #expect(response.field("Connection") == "close")
        #expect(try await client.readToEnd().isEmpty)
        #expect(proxy.origin.requests.isEmpty)
    }
}
