import Configuration
@testable import Proxy
import Reports
import TestSupport
import Testing

@Suite(
    "a path in an upstream's url is a prefix that nothing leads out of", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct PrefixTests {
    private static let climbing = [
        "/%2e%2e/tenant-b/", "/..;/tenant-b", "/..%2ftenant-b", "/../tenant-b", "/.%2e/x", "/a%5c..%5cb",
        "/%252e%252e/x", "/a/..",
    ]

    @Test(arguments: climbing)
    func `what climbs is refused, by the proxy, its base URL and why`(path: String) async throws {
        let proxy = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0", url: "/tenant-a")
        try expectProblem(
            try await proxy.request("GET", "http://api.test\(path)"), 400, "http_request_error", "ambiguous-path",
            upstream: "api.test")
        let response = try await RawClient.exchange(
            port: proxy.upstreamPort, "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try expectProblem(response, 400, "http_request_error", "ambiguous-path", upstream: "api.test")
        #expect(proxy.origin.connections.isEmpty)
        guard case .refused(400, _, let detail) = try Self.explain("https://far.example/tenant-a", path) else {
            Issue.record("why says otherwise")
            return
        }
        #expect(detail.contains("`..`"))
    }

    @Test(arguments: climbing)
    func `without a prefix there is nothing to lead out of`(path: String) async throws {
        for url in ["", "/"] {
            let proxy = try await ProxyInProcess(url: url)
            #expect(try await proxy.request("GET", "http://api.test\(path)").status == 200)
        }
        guard case .upstream = try Self.explain("https://far.example/", path) else {
            Issue.record("why says otherwise")
            return
        }
    }

    @Test(arguments: ["/", "/x%2Fy", "/a;v=1", "/a//b", "/..a/b..", "/x?y=/../z"])
    func `what stays below passes as it is`(path: String) async throws {
        let proxy = try await ProxyInProcess(url: "/tenant-a")
        #expect(try await proxy.request("GET", "http://api.test\(path)").status == 200)
        #expect(proxy.origin.requests.map(\.target) == ["/tenant-a\(path)"])
        guard case .upstream = try Self.explain("https://far.example/tenant-a", path) else {
            Issue.record("why says otherwise")
            return
        }
    }

    @Test(arguments: [("", "/tenant-a"), ("paths: [/]", ""), ("paths: [/]", "/tenant-a")])
    func `a request for the whole server does not leave`(more: String, url: String) async throws {
        let proxy = try await ProxyInProcess(upstream: more, url: url)
        for target in ["*", "http://api.test"] {
            let response = try await proxy.send(
                "OPTIONS \(target) HTTP/1.1\r\nHost: api.test\r\n\r\n", method: "OPTIONS")
            try expectProblem(response, 400, "http_request_error", "whole-server", upstream: "api.test")
        }
        #expect(proxy.origin.connections.isEmpty)
        #expect(proxy.endpoint.requests.isEmpty)
        #expect(try await proxy.request("OPTIONS", "http://api.test/").status == 200)
        #expect(proxy.origin.requests.map(\.target) == ["\(url)/"])
    }

    @Test func `why says so, too`() throws {
        guard case .refused(400, _, let detail) = try Self.explain("https://far.example/a", "", method: "OPTIONS")
        else {
            Issue.record("why says otherwise")
            return
        }
        #expect(detail.contains("OPTIONS *"))
        for (url, path) in [("https://far.example/", ""), ("https://far.example/a", "/")] {
            guard case .upstream = try Self.explain(url, path, method: "OPTIONS") else {
                Issue.record("why says otherwise")
                return
            }
        }
    }

    private static func explain(_ url: String, _ path: String, method: String = "GET") throws -> RouteExplanation {
        let text = "proxy: {listen: 127.0.0.1:0}\nupstreams: [{host: api.test, url: \"\(url)\"}]\n"
        let (configuration, _) = try Configuration.parse(yaml: text, file: "test.yaml", environment: [:])
        return RouteExplanation(configuration, method: method, url: "http://api.test\(path)")
    }
}
