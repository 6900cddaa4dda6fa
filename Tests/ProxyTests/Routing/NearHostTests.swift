import Configuration
import HTTPMessage
import TestSupport
import Testing

@testable import Proxy

@Suite("a host that no upstream is for is answered with the one that may be meant", .stopsProxies)
struct NearHostTests {
    private static func near(_ yaml: String) throws -> HostSuggestions {
        let (configuration, _) = try Configuration.parse(yaml: yaml, file: "test.yaml", environment: [:])
        return HostSuggestions(configuration.upstreams)
    }

    @Test(arguments: [
        ("api.exmaple.com", "api.example.com"), ("api.example.con", "api.example.com"),
        ("apis.example.com", "api.example.com"), ("api.example.com:8443", "api.example.com"),
        ("crm.test", "crm.test:9000"), ("crm.test:9001", "crm.test:9000"),
        ("one.wilt.example.org", "*.wild.example.org"),
        ("10.1.2.3", "10.1.2.3:8000"),
    ])
    func `a host with a slip of the hand, or another port, is guessed`(asked: String, meant: String) throws {
        let hosts = try Self.near(
            """
            upstreams:
              - host: api.example.com
              - host: crm.test:9000
              - host: "*.wild.example.org"
              - host: 10.1.2.3:8000
            """)
        #expect(try hosts.nearest(to: Authority(parsing: asked), caller: Caller())?.description == meant)
    }

    @Test(arguments: ["www.other.net", "10.1.2.4", "[::1]", "api.example.com.evil.net", "x", "com"])
    func `a host that only looks a little like it is not guessed`(asked: String) throws {
        let hosts = try Self.near("upstreams: [{host: api.example.com}, {host: \"10.1.2.3:8000\"}]")
        #expect(try hosts.nearest(to: Authority(parsing: asked), caller: Caller()) == nil)
    }

    @Test func `the nearest of several hosts is guessed`() throws {
        let hosts = try Self.near(
            "upstreams: [{host: aap.example.com}, {host: api.example.com}, {host: bpj.example.com}]")
        #expect(try hosts.nearest(to: Authority(parsing: "bpi.example.com"), caller: nil)?.description != nil)
        #expect(
            try hosts.nearest(to: Authority(parsing: "apii.example.com"), caller: nil)?.description == "api.example.com"
        )
    }

    @Test func `hosts that the caller may not use are not named, the operator sees them`() throws {
        let hosts = try Self.near(
            """
            proxy: {users: {ann: a-password, bob: b-password}}
            upstreams: [{host: secret.example.com, callers: {users: [ann]}}]
            """)
        let asked = try Authority(parsing: "secrte.example.com")
        #expect(hosts.nearest(to: asked, caller: Caller(user: "bob")) == nil)
        #expect(hosts.nearest(to: asked, caller: Caller()) == nil)
        #expect(hosts.nearest(to: asked, caller: Caller(user: "ann")) != nil)
        #expect(hosts.nearest(to: asked, caller: nil) != nil)
    }

    @Test func `thousands of upstreams that all look alike take little time`() async throws {
        let list = (0..<2000).map { "  - {host: api-\($0 + 10000).some-long-name.example.com}" }.joined(separator: "\n")
        let best = try await offPool {
            let hosts = try Self.near("upstreams:\n\(list)")
            let asked = try Authority(parsing: "aqi-ab.zome-long-name.example.com")
            return (0..<5).map { _ in ContinuousClock().measure { _ = hosts.nearest(to: asked, caller: nil) } }.min()
        }
        // A debug build; a release takes a twentieth.
        #expect(try #require(best) < .milliseconds(20))
    }

    @Test func `the answer names what was asked for, its port and the near one`() async throws {
        let proxy = try await ProxyInProcess(
            proxy: "users: {ann: a-password, bob: b-password}",
            more: "- {host: secret.test, url: ORIGIN, callers: {users: [ann]}}")
        func ask(_ url: String, _ user: String) async throws -> RawResponse {
            try await proxy.request("GET", url, fields: ["Proxy-Authorization: Basic \(user)"])
        }
        let ann = "YW5uOmEtcGFzc3dvcmQ="
        let bob = "Ym9iOmItcGFzc3dvcmQ="
        #expect(
            try await ask("http://api.tset/", bob).text.contains("no upstream for api.tset:80; did you mean api.test? ")
        )
        #expect(try await ask("http://api.test:8080/", bob).text.contains("for api.test:8080; did you mean api.test? "))
        #expect(
            try await ask("http://secert.test/", ann).text.contains("for secert.test:80; did you mean secret.test? "))
        let stranger = try await ask("http://secert.test/", bob)
        #expect(stranger.status == 403 && !stranger.text.contains("secret"), "\(stranger.text)")
    }
}
