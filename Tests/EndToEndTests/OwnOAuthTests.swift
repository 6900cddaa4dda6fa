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
        "authorization_endpoint": "https://idp.test/authorize", "jwks_uri": "https://idp.test/jwks"}
        """

    init() throws {
        directory = try TemporaryDirectory()
        endpoint = try TokenEndpoint { _, number in .token("real-token-\(number)") }
        origin = try RecordingOrigin { exchange in
            let isMetadata = exchange.head.target.contains("/.well-known/")
            try exchange.respond(
                fields: [("Content-Type", "application/json")], body: isMetadata ? Self.metadata : #"{"answer": "yes"}"#
            )
        }
    }

    private func configuration(_ more: String = "") throws -> String {
        let entry = "client: api, client_secret: dummy-secret-0123"
        let text = """
            proxy: {listen: 127.0.0.1:0, intercept: true}
            clients:
              api: {token_endpoint: "\(endpoint.url)", allow_plaintext: true, client_id: real, client_secret: {file: secret}}
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
            \(more)
            """
        try directory.write("the-real-secret-9876", to: "secret")
        return try directory.write(text, to: "config.yaml")
    }

    private func run(_ library: String, count: Int, _ file: String) async throws -> ChildProcess {
        try await ChildProcess.run(
            [
                try Repository.executable(), "exec", "--serve", "--config", file, "--", try Repository.python(),
                fixture("own_oauth.py"), library, "\(count)",
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
        "simple_salesforce", "databricks_sdk",
    ])
    func `a library's own OAuth code gets a placeholder, and the API gets the token`(library: String) async throws {
        let run = try await run(library, count: 3, try configuration())
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output == "200\n200\n200\n", "\(run.transcript)")
        let requests = origin.requests.filter { $0.target == "/x" }
        #expect(requests.map { $0.values("Authorization") } == Array(repeating: ["Bearer real-token-0"], count: 3))
        #expect(endpoint.requests.count == 1)
        for request in origin.requests { #expect(!"\(request)".contains("heimdallr1_")) }
        expectNoSecret(run)
    }

    @Test func `a program that sends its placeholder elsewhere is refused by each way`() async throws {
        let run = try await run("mistaken", count: 2, try configuration())
        #expect(run.output == "200\n403\n403\n403\n403\n200\n403\n403\n403\n403\n", "\(run.transcript)")
        #expect(origin.requests.map(\.target) == ["/x", "/x"])
        expectNoSecret(run)
    }
}
