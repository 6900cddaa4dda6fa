import TestSupport
import Testing

@Suite("settings of a client's requests and tokens", .timeLimit(.minutes(2)))
struct TokenSettingsTests {
    @Test func `parameters of single steps and a lifetime of one's own reach the server and the status`() async throws {
        let endpoint = try TokenEndpoint([.token("T1", expiresIn: "0", refreshToken: "R1")])
        let origin = try RecordingOrigin { try $0.respond($0.head.field("Authorization") == "Bearer T1" ? 200 : 401) }
        let proxy = try await RunningProxy(
            to: origin,
            client: """
                token_lifetime: off
                scope: [read, write]
                params: {tenant: acme, token: {tenant: other, audience: [a, b]}, refresh: {scope: [read, list]}}
                """, admin: "", tokenEndpoint: endpoint)
        #expect(try await proxy.get("http://api.test/").status == 200)
        let socket = proxy.directory.path + "/admin.sock"
        let form = try #require(endpoint.requests.first)
        #expect(form["tenant"] == "other" && form["audience"] == "a\nb" && form["scope"] == "read write")
        let status = try await RunningProxy.run(["status", "--socket", socket])
        #expect(status.output.contains("token has no known end: it serves until an API refuses it"), "\(status.output)")
        let refresh = try await RunningProxy.run(["refresh", "api", "--socket", socket])
        #expect(refresh.ending == .exited(0), "\(refresh.transcript)")
        let second = try #require(endpoint.requests.last)
        #expect(second["grant_type"] == "refresh_token" && second["scope"] == "read list")
        #expect(second["tenant"] == "acme" && second["audience"] == nil)
    }
}
