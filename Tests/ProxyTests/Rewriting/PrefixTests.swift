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
    func `a path that leads out of the prefix is refused by the proxy, its base URL and why`(path: String) async throws
    {
        let proxy = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0", url: "/tenant-a")
        try expectProblem(
            try await proxy.request("GET", "http://api.test\(path)"), "ambiguous-path", upstream: "api.test")
        let response = try await RawClient.exchange(
            port: proxy.upstreamPort, "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try expectProblem(response, "ambiguous-path", upstream: "api.test")
        #expect(proxy.origin.connections.isEmpty)
        #expect(try Self.refusal("https://far.example/tenant-a", path)?.contains("`..`") == true)
    }

    @Test(arguments: climbing)
    func `an url without a prefix has nothing to lead out of`(path: String) async throws {
        for url in ["", "/"] {
            let proxy = try await ProxyInProcess(url: url)
            #expect(try await proxy.request("GET", "http://api.test\(path)").status == 200)
        }
        #expect(try Self.refusal("https://far.example/", path) == nil)
    }

    @Test(arguments: ["/", "/x%2Fy", "/a;v=1", "/a//b", "/..a/b..", "/x?y=/../z"])
    func `a path that stays below the prefix passes as it is`(path: String) async throws {
        let proxy = try await ProxyInProcess(url: "/tenant-a")
        #expect(try await proxy.request("GET", "http://api.test\(path)").status == 200)
        #expect(proxy.origin.requests.map(\.target) == ["/tenant-a\(path)"])
        #expect(try Self.refusal("https://far.example/tenant-a", path) == nil)
    }

    @Test(arguments: [("", "/tenant-a"), ("paths: [/]", ""), ("paths: [/]", "/tenant-a")])
    func `a request for the whole server does not leave an upstream with paths or a prefix`(more: String, url: String)
        async throws
    {
        let proxy = try await ProxyInProcess(upstream: more, url: url)
        for target in ["*", "http://api.test"] {
            let response = try await proxy.send(
                "OPTIONS \(target) HTTP/1.1\r\nHost: api.test\r\n\r\n", method: "OPTIONS")
            try expectProblem(response, "whole-server", upstream: "api.test")
        }
        #expect(proxy.origin.connections.isEmpty)
        #expect(proxy.endpoint.requests.isEmpty)
        #expect(try await proxy.request("OPTIONS", "http://api.test/").status == 200)
        #expect(proxy.origin.requests.map(\.target) == ["\(url)/"])
    }

    @Test func `why refuses a path that leads out of the prefix, too`() throws {
        let refusal = try Self.refusal("https://far.example/a", "", method: "OPTIONS")
        #expect(refusal?.contains("OPTIONS *") == true)
        for (url, path) in [("https://far.example/", ""), ("https://far.example/a", "/")] {
            #expect(try Self.refusal(url, path, method: "OPTIONS") == nil)
        }
    }

    /// The words of `why`; `nil` where it says that the request goes to the upstream.
    private static func refusal(_ url: String, _ path: String, method: String = "GET") throws -> String? {
        let text = "proxy: {listen: 127.0.0.1:0}\nupstreams: [{host: api.test, url: \"\(url)\"}]\n"
        let (configuration, _) = try Configuration.parse(yaml: text, file: "test.yaml", environment: [:])
        return switch RouteExplanation(configuration, method: method, url: "http://api.test\(path)") {
        case .upstream: nil
        case .refused(400, _, let detail): detail
        case let other: throw TestFailure("\(other)")
        }
    }
}
