import Foundation
import TestSupport
import Testing

@Suite("children get the limits that the proxy was started with", .timeLimit(.minutes(2)))
struct ChildLimitTests {
    private static let wrapper = ["prlimit", "--nofile=200:4000"]

    @Test func `a secret's command gets the limits that the proxy was started with`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                clients: [
                    ProxyConfiguration.client(
                        tokenEndpoint: endpoint.url,
                        "client_id: c\nclient_secret: {command: [sh, -c, \"echo $(ulimit -Sn)-$(ulimit -Hn)\"]}\n"
                            + "token_endpoint_auth_method: client_secret_post")
                ], upstreams: [ProxyConfiguration.upstream(url: origin.url)]), under: Self.wrapper)
        #expect(try await proxy.get("http://api.test/").status == 200)
        #expect(endpoint.requests.first?["client_secret"] == "200-4000", "\(endpoint.requests)")
        // The proxy itself has raised its own.
        let limits = try String(contentsOfFile: "/proc/\(proxy.process.pid)/limits", encoding: .utf8)
        #expect(limits.contains(/Max open files +4000 +4000/), "\(limits)")
    }

    @Test func `a hook's command gets the limits that the proxy was started with`() async throws {
        let folder = try TemporaryDirectory()
        let proxy = try await RunningProxy(
            to: "http://127.0.0.1:1",
            client: "grant_type: authorization_code\nauthorization_endpoint: https://idp.example.com/authorize",
            admin: "",
            more:
                "hooks: {command: [sh, -c, \"echo $(ulimit -Sn)-$(ulimit -Hn) > \(folder.path)/new; mv \(folder.path)/new \(folder.path)/told\"]}",
            under: Self.wrapper)
        try await eventually("the hook") { (try? folder.read("told")) == "200-4000\n" }
        _ = proxy
    }
}
