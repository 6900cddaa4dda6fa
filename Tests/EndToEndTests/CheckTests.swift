import Foundation
import TestSupport
import Testing

@Suite("check, and what it tries", .timeLimit(.minutes(3)))
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

    @Test func `--json says the same to programs, problems and trials too`() async throws {
        let endpoint = try TokenEndpoint([.token("TOKEN-SEKRET")])
        let text = """
            clients:
            \(client("api", "token_endpoint: \(endpoint.url)"))
            upstreams: [{host: a.test, client: api, listen: "127.0.0.1:0"}]
            """
        let run = try await check(text, "--json", "--try", files: ["secret": "s"])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        let good = try object(run)
        #expect(good["good"] as? Bool == true && (good["problems"] as? [Any])?.isEmpty == true)
        let route = try #require((good["routes"] as? [[String: Any]])?.first)
        #expect(
            (route["host"] as? String)?.hasPrefix("a.test") == true
                && (route["client"] as? String)?.contains("client api") == true)
        #expect((good["listeners"] as? [[String: Any]])?.last?["upstream"] as? String == "a.test")
        #expect((good["trials"] as? [[String: Any]])?.first?["good"] as? Bool == true)
        #expect(!run.output.contains("SEKRET"))
        let wrong = try await check("upstreams: [{host: a.test, no_such_key: 1}]", "--json")
        #expect(wrong.ending == .exited(78) && wrong.errors.isEmpty, "\(wrong.transcript)")
        let bad = try object(wrong)
        #expect(bad["good"] as? Bool == false)
        let problem = try #require((bad["problems"] as? [[String: Any]])?.first)
        #expect(problem["line"] as? Int == 1 && (problem["message"] as? String)?.contains("no_such_key") == true)
    }

    @Test func `--try fetches one token for each client that needs nobody, and says what came of it`() async throws {
        let good = try TokenEndpoint([.token("TOKEN-SEKRET")])
        let bad = try TokenEndpoint([.error("invalid_client", status: 401, description: "no such SECRET-SEKRET")])
        let lost = try TokenEndpoint([.status(404)])
        func configuration(_ clients: String...) -> String {
            let names = clients.indices.map { "{host: h\($0).test, client: c\($0)}" }.joined(separator: ", ")
            return "admin: {}\nclients:\n" + clients.enumerated().map { client("c\($0)", $1) }.joined()
                + "upstreams: [\(names)]\n"
        }
        let files = ["secret": "SECRET-SEKRET"]
        let endpoint = "token_endpoint: \"\(good.url)\""
        let all = try await check(
            configuration(
                endpoint, endpoint + ", grant_type: password, username: ada, password: {file: FOLDER/secret}",
                endpoint + ", grant_type: refresh_token, refresh_token: {file: FOLDER/secret}",
                endpoint + ", grant_type: authorization_code, authorization_endpoint: http://127.0.0.1:1/authorize"),
            "--try", files: files)
        #expect(all.ending == .exited(0), "\(all.transcript)")
        #expect(good.requests.count == 2)
        for line in ["c0: got a token, good for 3", "c1: got a token", "c2: its refresh token was not tried"] {
            #expect(all.output.contains(line))
        }
        #expect(
            all.output.contains(
                "c3: somebody has to sign in; found: authorization_endpoint http://127.0.0.1:1/authorize"))

        let some = try await check(
            configuration(endpoint, "token_endpoint: \"\(bad.url)\"", "token_endpoint: \"\(lost.url)\""), "--try",
            files: files)
        #expect(some.ending == .exited(1))
        #expect(some.output.contains("c0: got a token"))
        #expect(some.output.contains("c1: no token: the token endpoint refuses this client: invalid_client"))
        #expect(some.output.contains("what to do: check client_id, client_secret"))
        #expect(some.output.contains("what to do: check the address, \(lost.url)"))
        #expect(bad.requests.count == 1)

        let nowhere = try await check(configuration("issuer: \"\(lost.url)\""), "--try", files: files)
        #expect(nowhere.ending == .exited(1))
        #expect(nowhere.output.contains("c0: no token: the server's metadata could not be had (404)"))
        for run in [all, some, nowhere] {
            #expect(!run.transcript.contains("SEKRET"))
        }
        let quiet = try await check(configuration(endpoint), files: files)
        #expect(quiet.ending == .exited(0))
        #expect(good.requests.count == 3, "nothing is asked without --try")
    }

    @Test func `--try at django-oauth-toolkit, whose metadata names the endpoint`() async throws {
        let server = try await DjangoOAuthToolkit()
        let run = try await check(
            """
            clients:
              machine: {issuer: "\(server.issuer)", client_id: \(DjangoOAuthToolkit.machine.id), client_secret: {file: FOLDER/secret}, scope: [read], allow_plaintext: true}
            upstreams: [{host: a.test, client: machine}]
            """, "--try", files: ["secret": DjangoOAuthToolkit.machine.secret])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output.contains("machine: got a token"))
    }
}
