import TestSupport
import Testing
import WireText

@Suite("verbs", .timeLimit(.minutes(2)))
struct CommandTests {
    @Test func `token prints the token and nothing else`() async throws {
        let admin = try await AdministeredProxy(client: "exportable: true")
        let run = try await admin.run("token", "api")
        #expect(run.ending == .exited(0))
        #expect(run.output == accessToken + "\n")
        #expect(run.errors.isEmpty)
    }

    @Test func `token says why there is none`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.error("invalid_scope")]), client: "exportable: true")
        try await admin.answersReady()
        let run = try await admin.run("token", "api")
        #expect(run.ending == .exited(1))
        #expect(run.output.isEmpty)
        #expect(run.errors.contains("invalid_scope"))
        #expect(run.errors.contains("What to do: check scope for typing errors, and allow"))
    }

    @Test func `why names rule, destination, client and the token's age`() async throws {
        let origin = try RecordingOrigin()
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: """
                  - {host: "*.wild.test", paths: [/v1/], methods: [GET]}
                """)
        try await admin.ready()
        let signed = try await admin.run("why", "GET", "http://api.test/x?y=z")
        #expect(signed.ending == .exited(0))
        for words in [
            "rule         upstreams[0] api.test\n", "destination  \(admin.origin.url)\n",
            "client       api (client_credentials) has a valid token\n", "put on as    Authorization: Bearer <token>\n",
            "token from   ", "expires in   59 min",
        ] { #expect(signed.output.contains(words), "\(signed.output)") }
        let value = try JSONParser.parse(
            Array(try await admin.run("why", "--json", "GET", "http://api.test/x").output.utf8))
        #expect(value["refused"] == .bool(false))
        #expect(value["route"]?["kind"]?.string == "upstream" && value["route"]?["client"]?.string == "api")
        #expect(value["route"]?["destination"]?.string == admin.origin.url)
        let strange = try await admin.run("why", "--json", "GET", "http://unknown.test/")
        #expect(strange.ending == .exited(3))
        let refused = try JSONParser.parse(Array(strange.output.utf8))
        #expect(refused["refused"] == .bool(true) && refused["route"]?["status"] == .number("403"))
        let plain = try await admin.run("why", "GET", "http://a.wild.test/v1/x")
        #expect(plain.output.contains("destination  https://a.wild.test\n"))
        #expect(plain.output.contains("forwarded unsigned"))
        for (method, url, status) in [
            ("POST", "http://a.wild.test/v1/", 403), ("GET", "http://a.wild.test/v2", 403),
            ("GET", "http://unknown.test/", 403), ("GET", "http://a.wild.test/v1/../x", 400),
            ("G T", "http://api.test/", 400), ("GET", "http://api.test/\r\nX: y", 400),
        ] {
            let run = try await admin.run("why", method, url)
            #expect(run.output.contains("answer \(status)"), "\(method) \(url): \(run.output)")
            #expect(run.ending == .exited(3))
            #expect(try await admin.run("why", "--exit-zero", method, url).ending == .exited(0))
        }
        for (method, url) in [("GET", "nonsense"), ("CONNECT", "api.test:443")] {
            #expect(try await admin.run("why", method, url).ending == .exited(2), "\(url) is no URL")
        }
        #expect(origin.requests.isEmpty)
        #expect(admin.origin.requests.isEmpty)
    }

    @Test func `status and why exit with 3 where a client can't get a token, unless told not to`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.error("invalid_scope")]))
        try await admin.answersReady()
        for verb in [["status"], ["status", "--json"], ["why", "GET", "http://api.test/"]] {
            let run = try await RunningProxy.run(verb + ["--socket", admin.socket])
            #expect(run.ending == .exited(3), "\(run.transcript)")
            #expect(run.errors.isEmpty && run.output.contains("invalid_scope"))
            let calm = try await RunningProxy.run(verb + ["--exit-zero", "--socket", admin.socket])
            #expect(calm.ending == .exited(0))
            #expect(calm.output.contains("invalid_scope"))
        }
        let why = try await admin.run("why", "GET", "http://api.test/")
        #expect(why.output.contains("answer       502 The authorization server refuses the client\n"))
        for verb in ["status", "why"] {
            let help = try await RunningProxy.run([verb, "--help"]).output
            #expect(help.contains("--exit-zero") && help.contains("3 when"))
        }
        let good = try await AdministeredProxy()
        try await good.ready()
        #expect(try await good.run("status").ending == .exited(0))
        #expect(try await good.run("why", "GET", "http://api.test/").ending == .exited(0))
        // Nobody to ask is another matter.
        #expect(try await good.proxy.terminate() == .exited(0))
        #expect(try await good.run("status", "--exit-zero").ending == .exited(1))
    }

    @Test func `exec gives a program the proxy, and not the secrets`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            """
            proxy: {listen: "127.0.0.1:18999"}
            clients:
              api: {token_endpoint: "https://idp.example.com/token", client_id: x, client_secret: {env: API_SECRET}}
            upstreams:
              - {host: api.test, client: api}
            """, to: "config.yaml")
        let environment: [String: String?] = ["API_SECRET": clientSecret, "KEPT": "yes"]
        let run = try await RunningProxy.run(["exec", "--config", file, "--", "env"], environment: environment)
        #expect(run.ending == .exited(0))
        #expect(run.output.contains("http_proxy=http://127.0.0.1:18999\n"))
        #expect(run.output.contains("KEPT=yes\n"))
        #expect(!run.output.contains("API_SECRET"))
        let code = try await RunningProxy.run(
            ["exec", "--config", file, "--", "sh", "-c", "exit 42"], environment: environment)
        #expect(code.ending == .exited(42))
        let unknown = try await RunningProxy.run(
            ["exec", "--config", file, "--", "no-such-program-anywhere"],
            environment: environment.merging(["PATH": "/usr/bin:/bin"]) { $1 })
        #expect(unknown.ending == .exited(127))
        #expect(unknown.errors.contains("can't run no-such-program-anywhere"))
        #expect(try await RunningProxy.run(["exec", "--config", file], environment: environment).ending == .exited(2))
    }

    @Test func `a program run by exec gets its token`() async throws {
        let admin = try await AdministeredProxy()
        let directory = try TemporaryDirectory()
        let file = try directory.write("proxy: {listen: \"127.0.0.1:\(admin.proxy.port)\"}", to: "config.yaml")
        let run = try await RunningProxy.run(
            ["exec", "--config", file, "--", "curl", "-sS", "--max-time", "10", "http://api.test/"],
            environment: ["no_proxy": nil, "NO_PROXY": nil])
        #expect(run.ending == .exited(0), "\(run.errors)")
        #expect(admin.origin.requests.first?.field("Authorization") == "Bearer \(accessToken)")
    }
}
