import TestSupport
import Testing

@Suite("secrets of servers and of the platform", .timeLimit(.minutes(3)))
struct RemoteSecretTests {
    private let folder: TemporaryDirectory
    private let servers: ChildProcess
    private let url: String
    private var socket: String { folder.path(of: "agent.sock") }

    init() async throws {
        folder = try TemporaryDirectory()
        servers = try ChildProcess([
            try Repository.python(), fixture("secret_servers.py"), folder.path(of: "agent.sock"),
        ])
        url = "http://127.0.0.1:\(try await servers.printedPort())"
    }

    private func proxy(
        _ tokens: TokenEndpoint, _ client: String, others: String = "", environment: [String: String?] = [:]
    ) async throws -> RunningProxy {
        try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            clients:
              api:
                token_endpoint: \(tokens.url)
                allow_plaintext: true
                client_id: sidecar
            \(client.indented(4))
            \(others.indented(2))
            upstreams: [{host: api.test, url: "\(tokens.url)", client: api, allow_plaintext: true}]
            """, environment: environment)
    }

    /// Without the requests of the upstream, which is the same server.
    private func requests(_ tokens: TokenEndpoint) -> [TokenEndpointRequest] {
        tokens.requests.filter { $0["grant_type"] != nil }
    }

    private func vault(_ lines: String) -> String {
        """
        token_endpoint_auth_method: client_secret_post
        client_secret:
          refresh: 1s
          vault:
            url: \(url)
            allow_plaintext: true
            path: apps/billing
            field: client_secret
        \(lines.indented(4))
        """
    }

    @Test func `a field of a secret in Vault is the client's secret, and a changed one is taken`() async throws {
        let tokens = try TokenEndpoint { _, number in .token("token-\(number)-0123456789", expiresIn: "1") }
        let proxy = try await proxy(
            tokens, vault("token: {env: VAULT_TOKEN}\nnamespace: team/a"), environment: ["VAULT_TOKEN": "root-token"])
        #expect(try await proxy.get("http://api.test/").status == 200, "\(proxy.log)")
        #expect(tokens.requests.first?["client_secret"]?.hasPrefix("vault-secret-") == true)
        #expect(servers.output.contains("read root-token namespace team/a\n"))
        try await eventually("a later token request has a later secret") {
            _ = try await proxy.get("http://api.test/")
            return Set(requests(tokens).compactMap { $0["client_secret"] }).count > 1
        }
        #expect(!proxy.log.contains("vault-secret-") && !proxy.log.contains("root-token"))
    }

    @Test func `a role logs in once with the pod's token, and anew after its token was revoked`() async throws {
        let tokens = try TokenEndpoint([.token("token-0123456789")])
        let jwt = try folder.write("pod-jwt\n", to: "jwt")
        let proxy = try await proxy(tokens, vault("role: billing\nauth: kubernetes\njwt: {file: \(jwt)}"))
        #expect(try await proxy.get("http://api.test/").status == 200, "\(proxy.log)")
        try await eventually("two readings with one login") {
            servers.output.split(separator: "\n").count { $0.hasPrefix("read login-1 ") } >= 2
        }
        #expect(!servers.output.contains("login 2 "))
        _ = try await ChildProcess.output(of: ["curl", "-s", "--noproxy", "*", "\(url)/revoke"])
        try await eventually("a reading with the second login") { servers.output.contains("read login-2 ") }
    }

    @Test func `the token of another client is the JWT of a login`() async throws {
        let tokens = try TokenEndpoint { request, _ in
            .token(request["client_id"] == "other" ? "token-of-the-other-client" : "token-0123456789")
        }
        let proxy = try await proxy(
            tokens, vault("role: billing\nauth: kubernetes\nclient: identity"),
            others:
                "identity: {token_endpoint: \"\(tokens.url)\", allow_plaintext: true, client_id: other, client_secret: \"\", token_endpoint_auth_method: client_secret_post}"
        )
        try await eventually("a request with the secret") { try await proxy.get("http://api.test/").status == 200 }
        #expect(servers.output.contains("login 1 token-of-the-other-client\n"), "\(servers.output)\(proxy.log)")
    }

    @Test(arguments: [
        ("token: not-a-token", "apps/billing", "the token may not read secret/apps/billing"),
        ("token: root-token", "apps/other", "there is no secret/apps/other"),
        ("token: root-token\nmount: kv", "apps/billing", "there is no kv/apps/billing"),
        ("role: nobody\njwt: pod-jwt", "apps/billing", "the login of role nobody at auth/jwt was answered 400"),
    ])
    func `what Vault refuses is told with its place, and no secret is`(
        lines: String, path: String, words: String
    ) async throws {
        let tokens = try TokenEndpoint([.token("token-0123456789")])
        let proxy = try await proxy(
            tokens, vault(lines).replacing("path: apps/billing", with: "path: \(path)"))
        #expect(try await proxy.get("http://api.test/").status >= 500)
        try await eventually("the cause in the log") { proxy.log.contains("Vault: \(words)") }
        #expect(!proxy.log.contains("pod-jwt") && !proxy.log.contains("not-a-token") && tokens.requests.isEmpty)
    }

    @Test(arguments: [("", "one"), (", id: \"spiffe://example.org/two\"", "two")])
    func `grpcio's Workload API gives a new assertion to each token request, with the type of SPIFFE`(
        more: String, identity: String
    ) async throws {
        let tokens = try TokenEndpoint { _, number in .token("token-\(number)-0123456789", expiresIn: "1") }
        let proxy = try await proxy(tokens, "client_assertion: {spiffe: {socket: \"unix://\(socket)\"\(more)}}")
        try await eventually("two token requests") {
            _ = try await proxy.get("http://api.test/")
            return requests(tokens).count > 1
        }
        for request in requests(tokens) {
            #expect(request["client_assertion"] == "\(identity).\(tokens.url).signature")
            #expect(request["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe")
        }
        #expect(servers.output.split(separator: "\n").count { $0 == "svid for \(tokens.url)" } >= 2)
    }

    @Test(arguments: [
        ("unix:FOLDER/agent.sock, audience: nobody", "no identity issued"),
        ("unix:FOLDER/nothing.sock", "the connection could not be made"),
        ("unix:FOLDER/agent.sock, id: \"spiffe://example.org/three\"", "the agent has no such `id` here"),
    ])
    func `an agent's refusal and a missing agent are told`(socket: String, words: String) async throws {
        let tokens = try TokenEndpoint([.token("token-0123456789")])
        let place = socket.replacing("FOLDER/", with: folder.path + "/")
        let proxy = try await proxy(tokens, "client_assertion: {spiffe: {socket: \(place)}}")
        #expect(try await proxy.get("http://api.test/").status >= 500)
        try await eventually("the cause in the log") { proxy.log.contains(words) }
        #expect(tokens.requests.isEmpty)
    }

    @Test func `a job of GitHub Actions is known by its ID token`() async throws {
        let tokens = try TokenEndpoint([.token("token-0123456789")])
        let proxy = try await proxy(
            tokens, "client_assertion: {github_actions: {audience: \"api://Exchange?x=1&y\"}}",
            environment: [
                "ACTIONS_ID_TOKEN_REQUEST_URL": "\(url)/id-token?api-version=2.0",
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request-token",
            ])
        #expect(try await proxy.get("http://api.test/").status == 200, "\(proxy.log)")
        #expect(tokens.requests.first?["client_assertion"] == "github.api://Exchange?x=1&y.signature")
        #expect(servers.output.contains("id token for api://Exchange?x=1&y version ['2.0']\n"))
        #expect(!proxy.log.contains("request-token"))
    }

    @Test func `outside a job, GitHub's token is missing with the remedy`() async throws {
        let tokens = try TokenEndpoint([.token("token-0123456789")])
        let proxy = try await proxy(tokens, "client_assertion: {github_actions: {}}")
        #expect(try await proxy.get("http://api.test/").status >= 500)
        try await eventually("the remedy") { proxy.log.contains("permissions: id-token: write") }
    }
}
