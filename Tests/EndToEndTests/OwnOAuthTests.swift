import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("unmodified programs with OAuth code of their own", .timeLimit(.minutes(5)))
struct OwnOAuthTests {
    private let directory: TemporaryDirectory
    private let endpoint: TokenEndpoint
    private let origin: RecordingOrigin

    /// The metadata that a server of OAuth has beside its token endpoint. Everything else is the API.
    private static let metadata = """
        {"issuer": "https://idp.test/tenant", "oidc_endpoint": "https://api.test/oidc", "token_endpoint": "https://idp.test/token", \
        "authorization_endpoint": "https://idp.test/authorize", "jwks_uri": "https://idp.test/jwks", \
        "response_types_supported": ["code"], "resource": "https://api.test/x", \
        "authorization_servers": ["https://idp.test/tenant"]}
        """

    init() throws {
        directory = try TemporaryDirectory()
        endpoint = try TokenEndpoint { _, number in .token("real-token-\(number)") }
        origin = try RecordingOrigin { exchange in
            let isMetadata = exchange.head.target.contains("/.well-known/")
            if exchange.head.target == "/x", exchange.head.values("Authorization").isEmpty {
                let place = "https://api.test/.well-known/oauth-protected-resource/x"
                return try exchange.respond(
                    401, fields: [("WWW-Authenticate", "Bearer resource_metadata=\"\(place)\"")])
            }
            try exchange.respond(
                fields: [("Content-Type", "application/json")], body: isMetadata ? Self.metadata : #"{"answer": "yes"}"#
            )
        }
    }

    /// - Parameter client: further keys of the client.
    private func configuration(
        _ client: String = "", _ endpoint: TokenEndpoint? = nil, _ origin: RecordingOrigin? = nil
    ) throws -> String {
        let (endpoint, origin) = (endpoint ?? self.endpoint, origin ?? self.origin)
        let entry = "client: api, client_secret: dummy-secret-0123"
        let text = """
            proxy: {listen: 127.0.0.1:0, intercept: true}
            clients:
              api: {token_endpoint: "\(endpoint.url)", allow_plaintext: true, client_id: real, client_secret: {file: secret}\(client)}
            upstreams:
              - host: idp.test
                paths: [/token]
                issue:
                  - {\(entry), client_id: legacy}
                  - {client: api, client_id: job@project.iam.test}
              - {host: idp.test, paths: [/.well-known, /tenant], url: "\(origin.url)"}
              - host: idp.salesforce.com
                paths: [/services/oauth2/token]
                issue: {\(entry), client_id: legacy, answer: {instance_url: "https://api.test"}}
              - {host: api.test, url: "\(origin.url)", client: api, allow_plaintext: true, require_placeholder: issued}
              - {host: other.test, url: "\(origin.url)"}
            """
        try directory.write("the-real-secret-9876", to: "secret")
        return try directory.write(text, to: "config.yaml")
    }

    private func run(
        _ library: String, count: Int, _ file: String, _ options: [String] = ["--serve"]
    ) async throws -> ChildProcess {
        try await ChildProcess.run(
            [
                try Repository.executable(), "exec",
            ] + options + [
                "--config", file, "--", try Repository.python(), fixture("own_oauth.py"), library, "\(count)",
            ], environment: InterceptedProgram.clean.merging(["XDG_RUNTIME_DIR": directory.path]) { $1 },
            within: .seconds(150))
    }

    private func expectNoSecret(_ run: ChildProcess) {
        for text in ["heimdallr1_", "dummy-secret", "the-real-secret", "real-token"] {
            #expect(!run.transcript.contains(text), "\(run.transcript)")
        }
    }

    @Test(arguments: [
        "requests_oauthlib", "requests_oauthlib_refresh", "authlib_requests", "authlib_httpx", "msal", "google_auth",
        "simple_salesforce", "databricks_sdk", "mcp",
    ])
    func `a library's own OAuth code gets a placeholder, and the API gets the token`(library: String) async throws {
        let run = try await run(library, count: 3, try configuration())
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output == "200\n200\n200\n", "\(run.transcript)")
        // One library asks without a token first.
        let requests = origin.requests.filter { $0.target == "/x" && !$0.values("Authorization").isEmpty }
        #expect(requests.map { $0.values("Authorization") } == Array(repeating: ["Bearer real-token-0"], count: 3))
        #expect(endpoint.requests.count == 1)
        for request in origin.requests { #expect(!"\(request)".contains("heimdallr1_")) }
        expectNoSecret(run)
    }

    /// Go's library sends Basic form-encoded, and after a refusal again in the body; or a signed assertion.
    @Test(arguments: ["client", "jwt"])
    func `Go's own OAuth code gets a placeholder, and the API gets the token`(kind: String) async throws {
        let program = directory.path(of: "own_oauth")
        _ = try await ChildProcess.output(
            of: ["go", "build", "-o", program, fixture("own_oauth.go")],
            environment: ["GO111MODULE": "off", "GOPATH": "/usr/share/gocode"], within: .seconds(150))
        let run = try await ChildProcess.run(
            [
                try Repository.executable(), "exec", "--serve", "--config", try configuration(), "--", program, kind,
                "3",
            ], environment: InterceptedProgram.clean.merging(["XDG_RUNTIME_DIR": directory.path]) { $1 },
            within: .seconds(150))
        #expect(run.output == "200\n200\n200\n", "\(run.transcript)")
        let requests = origin.requests.filter { $0.target == "/x" }
        #expect(requests.map { $0.values("Authorization") } == Array(repeating: ["Bearer real-token-0"], count: 3))
        #expect(endpoint.requests.count == 1)
        expectNoSecret(run)
    }

    /// DPoP and a rotating refresh token underneath. A token lives for as many requests as the API takes.
    @Test func `a thousand requests of one placeholder outlive three tokens`() async throws {
        let endpoint = try TokenEndpoint { _, number in
            .token("real-token-\(number)", type: "DPoP", refreshToken: "refresh-\(number + 1)")
        }
        let uses = Mutex<[String: Int]>([:])
        let origin = try RecordingOrigin { exchange in
            let sent = exchange.head.values("Authorization").first ?? ""
            let count = uses.withLock { uses in
                uses[sent, default: 0] += 1
                return uses[sent] ?? 0
            }
            let isGood = sent.hasPrefix("DPoP real-token-") && exchange.head.values("DPoP").count == 1
            try isGood && count <= 334 ? exchange.respond(body: "yes") : exchange.respond(401)
        }
        try directory.write("refresh-0", to: "refresh")
        let file = try configuration(
            ", grant_type: refresh_token, refresh_token: {file: refresh}, dpop: true", endpoint, origin)
        let run = try await run("requests_oauthlib", count: 1000, file)
        #expect(run.output == String(repeating: "200\n", count: 1000), "\(run.transcript)")
        #expect(Set(uses.withLock { $0.keys }) == ["DPoP real-token-0", "DPoP real-token-1", "DPoP real-token-2"])
        #expect(endpoint.requests.map { $0["refresh_token"] } == ["refresh-0", "refresh-1", "refresh-2"])
        expectNoSecret(run)
    }

    @Test(
        .enabled(if: Namespaces.work(["--user", "--net", "--mount", "true"])),
        arguments: ["requests_oauthlib", "google_auth", "mistaken"])
    func `an enclosed program gets its placeholder, and reaches its API`(library: String) async throws {
        let run = try await run(library, count: 1, try configuration(), ["--enclose", "--serve"])
        #expect(run.output.hasPrefix("200\n"), "\(run.transcript)")
        #expect(origin.requests.map { $0.values("Authorization") } == [["Bearer real-token-0"]])
        expectNoSecret(run)
    }

    @Test func `a program that sends its placeholder elsewhere is refused by each way`() async throws {
        let run = try await run("mistaken", count: 2, try configuration())
        #expect(run.output == "200\n403\n403\n403\n403\n200\n403\n403\n403\n403\n", "\(run.transcript)")
        #expect(origin.requests.map(\.target) == ["/x", "/x"])
        expectNoSecret(run)
    }

    /// Asks by plain HTTP, as at a base URL, and returns the placeholder.
    private func ask(_ proxy: RunningProxy) async throws -> String {
        let body = "grant_type=client_credentials&client_id=legacy&client_secret=dummy-secret-0123"
        let answer = try await proxy.send("POST", "http://idp.test/token", body: body)
        let json = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        return try #require(json?["access_token"] as? String, "\(answer.text)")
    }

    @Test func `a placeholder is good after a restart and at another proxy with the same key, else it is refused`()
        async throws
    {
        func proxy(store: String) async throws -> RunningProxy {
            try await RunningProxy(
                ProxyConfiguration(
                    tokenEndpoint: endpoint.url,
                    upstreams: ProxyConfiguration.upstream(url: origin.url, "require_placeholder: issued"),
                    """
                      - host: idp.test
                        paths: [/token]
                        issue: {client: api, client_id: legacy, client_secret: dummy-secret-0123}
                    """, more: store))
        }
        let folder = try TemporaryDirectory()
        _ = try await RunningProxy.run(["keygen", "--output", folder.path(of: "key")])
        func store(_ name: String) -> String {
            "store: {kind: file, directory: \(folder.path)/\(name), key: {file: \(folder.path)/key}}"
        }
        let first = try await proxy(store: store("one"))
        let field = ("Authorization", "Bearer \(try await ask(first))")
        #expect(try await first.get("http://api.test/x", fields: [field]).status == 200)
        #expect(try await first.terminate() == .exited(0))
        for name in ["one", "two"] {
            let next = try await proxy(store: store(name))
            #expect(try await next.get("http://api.test/x", fields: [field]).status == 200)
            #expect(try await next.terminate() == .exited(0))
        }
        let other = try await proxy(store: "")
        let refused = try await other.get("http://api.test/x", fields: [field])
        #expect(refused.status == 401 && refused.text.contains("placeholder-foreign"))
        let own = ("Authorization", "Bearer \(try await ask(other))")
        #expect(try await other.get("http://api.test/x", fields: [own]).status == 200)
        #expect(origin.requests.allSatisfy { $0.values("Authorization").first?.hasPrefix("Bearer real-token") == true })
    }
}
