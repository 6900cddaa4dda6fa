import TestSupport
import Testing

@Suite("the proxy counts and names itself on the way", .stopsProxies)
struct HopTests {
    @Test func `Via names the proxy in both directions, behind those who were there before`() async throws {
        let proxy = try await ProxyInProcess { try $0.respond(fields: [("Via", "1.0 other")]) }
        let response = try await proxy.request(fields: ["Via: 1.1 first"])
        #expect(response.fields.filter { $0.name == "Via" }.map(\.value) == ["1.0 other", "1.1 heimdallr-proxy"])
        #expect(proxy.origin.requests[0].values("Via") == ["1.1 first", "1.1 heimdallr-proxy"])
    }

    @Test func `a request that comes back again and again is a circle, whichever way it came`() async throws {
        let proxy = try await ProxyInProcess()
        let own = "1.1 heimdallr-proxy"
        let eight = Array(repeating: own, count: 8)
        for fields in [eight.map { "Via: \($0)" }, ["Via: \(eight.joined(separator: ",\t"))"]] {
            let refused = try await proxy.request(fields: fields)
            #expect(refused.status == 508)
            #expect(refused.field("Proxy-Status")?.contains("proxy_loop_detected") == true)
        }
        #expect(proxy.origin.requests.isEmpty)
        let seven = Array(repeating: own, count: 7).joined(separator: ", ")
        let others = Array(repeating: "1.1 my-heimdallr-proxy, 1.1 heimdallr-proxy-2", count: 20).joined(separator: ",")
        #expect(try await proxy.request(fields: ["Via: \(seven)", "Via: \(others)"]).status == 200)
    }

    @Test func `with via: false, CDN-Loop replaces Via, and shows circles`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "via: false", more: "- {host: with.test, url: ORIGIN, client: api, allow_plaintext: true}"
        ) { try $0.respond(fields: [("Via", "1.0 other")]) }
        let response = try await proxy.request(fields: ["Via: 1.1 first", "CDN-Loop: other;v=1"])
        #expect(response.fields.filter { $0.name == "Via" }.map(\.value) == ["1.0 other"])
        #expect(proxy.origin.requests[0].values("Via") == ["1.1 first"])
        #expect(proxy.origin.requests[0].values("CDN-Loop") == ["other;v=1", "heimdallr-proxy"])
        // Both fields count, at any upstream, even if Connection names one.
        let own = "Connection: CDN-Loop\r\nCDN-Loop: "
        let eight = (0..<4).map { _ in "heimdallr-proxy" } + ["heimdallr-proxy, other"]
        for host in ["api.test", "with.test"] {
            let refused = try await proxy.request(
                "GET", "http://\(host)/",
                fields: [
                    own + eight.joined(separator: ","),
                    "Via: 1.1 heimdallr-proxy, 2 heimdallr-proxy, 1.0 heimdallr-proxy",
                ])
            #expect(refused.status == 508)
            let few = ["CDN-Loop: my-heimdallr-proxy, heimdallr-proxy;v=1, heimdallr-proxy2", own + "heimdallr-proxy"]
            #expect(try await proxy.request("GET", "http://\(host)/", fields: few).status == 200)
        }
        #expect(proxy.origin.requests.last?.values("CDN-Loop").contains("heimdallr-proxy") == true)
    }

    @Test(arguments: ["TRACE", "OPTIONS"])
    func `Max-Forwards counts down, and no further than to here`(method: String) async throws {
        let proxy = try await ProxyInProcess()
        _ = try await proxy.request(method, fields: ["Max-Forwards: 3"])
        #expect(proxy.origin.requests.map { $0.values("Max-Forwards") } == [["2"]])
        #expect(try await proxy.request(method, fields: ["Max-Forwards: 0"]).status == 200)
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `TRACE that ends here shows the request that came, but no secret`() async throws {
        let proxy = try await ProxyInProcess()
        let response = try await proxy.request(
            "TRACE",
            fields: ["Max-Forwards: 0", "X-Mine: seen", "Authorization: Basic c2VjcmV0", "Cookie: id=secret"])
        #expect(response.field("Content-Type") == "message/http")
        #expect(response.text.hasPrefix("TRACE http://api.test/ HTTP/1.1\r\n"))
        #expect(response.text.contains("X-Mine: seen\r\n"))
        #expect(!response.text.contains("c2VjcmV0"))
        #expect(!response.text.contains("id=secret"))
    }

    @Test func `Max-Forwards of other methods is left alone`() async throws {
        let proxy = try await ProxyInProcess()
        #expect(try await proxy.request(fields: ["Max-Forwards: 0"]).text == "ok")
        #expect(proxy.origin.requests[0].values("Max-Forwards") == ["0"])
    }

    @Test(arguments: ["x", "-1", "1.5", "1 1"])
    func `a Max-Forwards that is no count is refused`(count: String) async throws {
        let proxy = try await ProxyInProcess()
        #expect(try await proxy.request("OPTIONS", fields: ["Max-Forwards: \(count)"]).status == 400)
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `an Expect field of a request without a body is left out`() async throws {
        let proxy = try await ProxyInProcess()
        #expect(try await proxy.request(fields: ["Expect: 100-continue"]).text == "ok")
        #expect(proxy.origin.requests[0].values("Expect").isEmpty)
    }
}
