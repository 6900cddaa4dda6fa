import Foundation
import TestSupport
import Testing

@Suite("check", .timeLimit(.minutes(3)))
struct CheckTests {
    private func check(_ text: String, _ arguments: String..., files: [String: String] = [:]) async throws
        -> ChildProcess
    {
        let directory = try TemporaryDirectory()
        for (name, content) in files { _ = try directory.write(content, to: name) }
        let file = try directory.write(text.replacing("FOLDER", with: directory.path), to: "config.yaml")
        return try await RunningProxy.run(["check", "--config", file] + arguments)
    }

    private func client(_ name: String, _ endpoint: String, _ more: String = "") -> String {
        "  \(name): {client_id: c, client_secret: {file: FOLDER/secret}, \(endpoint), allow_plaintext: true, allow_deprecated: true\(more)}\n"
    }

    @Test func `the redirect URI of each client is printed`() async throws {
        let run = try await check(
            """
            admin: {listen: "0.0.0.0:18081", token: {file: FOLDER/secret}}
            clients:
              calendar: {client_id: c, grant_type: authorization_code, issuer: https://idp.example.com}
              app: {client_id: c, grant_type: authorization_code, issuer: https://idp.example.com, redirect_uri: com.example.app:/oauth}
              machine: {client_id: c, issuer: https://idp.example.com}
            upstreams: [{host: a.test, client: calendar}, {host: b.test, client: app}, {host: c.test, client: machine}]
            """, files: ["secret": "an-admin-token-that-is-long-enough-for-anybody"])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output.contains("  calendar: http://127.0.0.1:18081/callback\n"))
        #expect(run.output.contains("  app: com.example.app:/oauth\n"))
        #expect(!run.output.contains("  machine: "))
        #expect(run.output.contains("  0.0.0.0:18081  (administration)\n"))
    }

    private func object(_ run: ChildProcess) throws -> [String: Any] {
        try #require(
            try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any], "\(run.transcript)")
    }

    @Test func `check --json says the same to programs, problems too`() async throws {
        let endpoint = try TokenEndpoint([.token("TOKEN-SEKRET")])
        let text = """
            clients:
            \(client("api", "token_endpoint: \(endpoint.url)"))
            upstreams: [{host: a.test, client: api, listen: "127.0.0.1:0"}]
            """
        let run = try await check(text, "--json", files: ["secret": "s"])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        let good = try object(run)
        #expect((good["configuration"] as? String)?.hasSuffix("/config.yaml") == true)
        #expect(good["good"] as? Bool == true && (good["problems"] as? [Any])?.isEmpty == true)
        let route = try #require((good["routes"] as? [[String: Any]])?.first)
        #expect(
            (route["host"] as? String)?.hasPrefix("a.test") == true
                && (route["client"] as? String)?.contains("client api") == true)
        #expect((good["listeners"] as? [[String: Any]])?.last?["upstream"] as? String == "a.test")
        #expect(endpoint.requests.isEmpty, "check asks no server")
        let wrong = try await check("upstreams: [{host: a.test, no_such_key: 1}]", "--json")
        #expect(wrong.ending == .exited(78) && wrong.errors.isEmpty, "\(wrong.transcript)")
        let bad = try object(wrong)
        #expect(bad["good"] as? Bool == false && (bad["configuration"] as? String)?.hasSuffix("/config.yaml") == true)
        let problem = try #require((bad["problems"] as? [[String: Any]])?.first)
        let start = try object(try await check("upstreams: []\naudit: {file: FOLDER/none/audit}", "--json"))
        #expect((start["problems"] as? [[String: Any]])?.first?["line"] as? Int == 2, "\(start)")
        #expect(problem["line"] as? Int == 1 && (problem["message"] as? String)?.contains("no_such_key") == true)
    }

    @Test func `check --try is wrong usage: doctor asks the servers`() async throws {
        let run = try await check("upstreams: [{host: a.test}]", "--try")
        #expect(run.ending == .exited(2), "\(run.transcript)")
        let verb = try await RunningProxy.run(["try"])
        #expect(verb.ending == .exited(2) && verb.errors.contains("did you mean \"doctor\"?"), "\(verb.transcript)")
    }
}
