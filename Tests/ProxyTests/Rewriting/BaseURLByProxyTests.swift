import Foundation
import TestSupport
import Testing

@Suite(
    "a base URL that is asked for through the proxy, and pages at the proxy", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct BaseURLByProxyTests {
    @Test(arguments: ["127.0.0.1", "localhost", "LOCALHOST"])
    func `a base URL that is asked for through the proxy is served as by its listener`(name: String) async throws {
        for unmatched in ["reject", "forward"] {
            let proxy = try await ProxyInProcess(
                upstream: "listen: 127.0.0.1:0\npaths: [/v1/]", proxy: "unmatched: \(unmatched)", url: "/base")
            let base = "http://\(name):\(proxy.upstreamPort)"
            #expect(try await proxy.request("GET", "\(base)/v1/x?y").status == 200)
            #expect(proxy.origin.requests.map(\.target) == ["/base/v1/x?y"])
            #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
            try expectProblem(try await proxy.request("GET", "\(base)/v2"), "not-covered", upstream: nil)
            try expectProblem(
                try await proxy.request("GET", "\(base)/v1/", fields: ["Origin: http://page.test"]), "web-page",
                upstream: nil)
        }
    }

    @Test func `redirects come home to a base URL that is asked for through the proxy`() async throws {
        let proxy = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0") {
            let own = $0.head.values("Host").first ?? ""
            try $0.respond(302, fields: [("Location", "http://\(own)/x")])
        }
        let base = "http://127.0.0.1:\(proxy.upstreamPort)"
        #expect(try await proxy.request("GET", "\(base)/").field("Location") == "\(base)/x")
    }

    @Test func `the proxy itself, other ports and other forms are no base URL`() async throws {
        let proxy = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0")
        for url in [
            "http://127.0.0.1:\(proxy.port)/", "http://127.0.0.1:1/", "http://127.0.0.2:\(proxy.upstreamPort)/",
        ] {
            #expect(try await proxy.request("GET", url).status == 403)
        }
        #expect(try await proxy.send("GET / HTTP/1.1\r\nHost: 127.0.0.1:\(proxy.upstreamPort)\r\n\r\n").status == 403)
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `a caller that may not use the upstream may not use it by its base URL through the proxy`() async throws
    {
        let proxy = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0\ncallers: {listeners: [127.0.0.1:0]}")
        #expect(try await proxy.request("GET", "http://127.0.0.1:\(proxy.upstreamPort)/").status == 200)
        let users = "users: {alice: secret-of-alice, bob: secret-of-bob}"
        let limited = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0\ncallers: {users: [alice]}", proxy: users)
        for (user, status) in [("alice", 200), ("bob", 403)] {
            let credential = Array("\(user):secret-of-\(user)".utf8)
            let response = try await limited.request(
                "GET", "http://127.0.0.1:\(limited.upstreamPort)/",
                fields: ["Proxy-Authorization: Basic \(Data(credential).base64EncodedString())"])
            #expect(response.status == status)
        }
    }

    static let pages = [
        "Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "sec-fetch-site: none",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0",
    ]

    @Test(arguments: pages)
    func `a web page whose port is redirected gets no token`(field: String) async throws {
        let proxy = try await ProxyInProcess(more: "- {host: plain.test, url: \"ORIGIN\"}")
        func get(_ host: String) async throws -> RawResponse {
            try await proxy.send("GET / HTTP/1.1\r\nHost: \(host)\r\n\(field)\r\n\r\n")
        }
        try expectProblem(try await get("api.test"), "web-page")
        #expect(proxy.origin.requests.isEmpty)
        #expect(proxy.endpoint.requests.isEmpty)
        // There is nothing to take where there is no token, and whoever set up a browser to use the proxy meant it.
        #expect(try await get("plain.test").status == 200)
        #expect(try await proxy.request(fields: [field]).status == 200)
        let open = try await ProxyInProcess(upstream: "browsers: true")
        #expect(try await open.send("GET / HTTP/1.1\r\nHost: api.test\r\n\(field)\r\n\r\n").status == 200)
    }

    @Test func `a program whose port is redirected gets the token`() async throws {
        let proxy = try await ProxyInProcess()
        let response = try await proxy.send(
            "GET / HTTP/1.1\r\nHost: api.test\r\nUser-Agent: curl/8\r\nSec-Fetch-Mode: cors\r\n\r\n")
        #expect(response.status == 200)
        #expect(proxy.origin.requests.first?.authorization == ["Bearer T1"])
    }
}
