import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(
    "what is secret leaves the memory", .timeLimit(.minutes(5)),
    .enabled(if: geteuid() == 0, "only root may look into the proxy, which forbids dumps"))
struct SecretsInMemoryTests {
    /// No text of the process's own looks like these.
    private static func secret(_ name: String) -> String {
        "\(name)-\((0..<24).map { _ in String("abcdefghijkmnpqrstuvwxyz23456789".randomElement() ?? "x") }.joined())"
    }

    private let access = Self.secret("access")
    private let refresh = Self.secret("refresh")
    private let id = Self.secret("id")
    private let client = Self.secret("client")
    private let password = Self.secret("password")

    /// The first answer brings them; the next has others.
    private func endpoint() throws -> TokenEndpoint {
        let later = Self.secret("later")
        let served = Mutex(0)
        return try TokenEndpoint { [access, refresh, id] request, _ in
            if request.target.hasPrefix("/revoke") { return .status(200) }
            let number = served.withLock {
                $0 += 1
                return $0
            }
            return number == 1
                ? .token(access, refreshToken: refresh, extra: #""id_token":"\#(id)","team":{"token":"\#(access)"}"#)
                : .token("\(later)\(number)")
        }
    }

    enum Way: String, CaseIterable {
        case plain, tls, http2, query
    }

    /// Everything by way of nginx, which ends TLS where there is any.
    private func proxy(_ endpoint: TokenEndpoint, _ way: Way, client lines: String) async throws
        -> (proxy: RunningProxy, nginx: Nginx)
    {
        let certificate = way == .tls || way == .http2 ? try await PrivateCA().server() : nil
        let nginx = try await Nginx(
            certificate: certificate,
            locations: """
                location /oauth/ {
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_pass http://127.0.0.1:\(endpoint.port)/;
                }
                location / { return 200 "ok"; }
                """)
        let api = certificate == nil ? "http://127.0.0.1:\(nginx.httpPort)" : "https://localhost:\(nginx.httpsPort)"
        let more = way == .query ? "inject: {query: access_token}\nallow_deprecated: true\n" : ""
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(api)/oauth/token", client: "revocation_endpoint: \(api)/oauth/revoke\n" + lines,
                admin: "", upstreams: ProxyConfiguration.upstream(url: api, "http2: \(way == .http2)\n" + more),
                more: certificate.map { "tls: {ca_file: \($0.authority.certificateFile)}" } ?? "",
                files: ["secret": client, "password": password]))
        return (proxy, nginx)
    }

    /// Uses the token, signs out, and searches for the secrets.
    private func checkLogout(_ proxy: RunningProxy, _ nginx: Nginx, _ endpoint: TokenEndpoint, _ way: Way) async throws
    {
        let program = try await RawClient.connect(port: proxy.port)
        for number in 0..<5 {
            try await program.send("GET http://api.test/\(number) HTTP/1.1\r\nHost: api.test\r\n\r\n")
            #expect(try await program.response().status == 200)
            #expect(try await proxy.get("http://api.test/once").status == 200)
        }
        #expect(try nginx.accessLog().contains(way == .query ? "access_token=\(access)" : "Bearer \(access)"))
        // The secret in use is found. Otherwise the search would not work.
        #expect(try await !ProcessMemory(of: proxy.process.pid).findings(of: access).isEmpty)
        let socket = proxy.directory.path(of: "admin.sock")
        let out = try await RunningProxy.run(["logout", "--socket", socket, "api"])
        #expect(out.ending == .exited(0), "\(out.transcript)")
        #expect(endpoint.requests.contains { $0["token"] == refresh })
        let memory = ProcessMemory(of: proxy.process.pid)
        for (name, secret) in [
            ("the access token", access), ("the refresh token", refresh), ("the id token", id),
            ("the Basic credential", "the-tests:\(client)".base64), ("the client's secret", client),
            ("the password", password),
        ] {
            // libnghttp2 gives heads back as they were.
            if way == .http2, secret == access { continue }
            // Exchanges under way end first.
            try? await eventually("it is gone", within: .seconds(4)) { try await memory.findings(of: secret).isEmpty }
            let left = try await memory.findings(of: secret)
            let text = left.map { "\n  \($0)" }.joined()
            #expect(left.isEmpty, "\(name) is there \(left.count) times:\(text)")
        }
        withExtendedLifetime((program, nginx)) {}
    }

    @Test(arguments: Way.allCases)
    func `after a logout no token is left in memory, nor anything of what brought it`(way: Way) async throws {
        let endpoint = try endpoint()
        let (proxy, nginx) = try await proxy(
            endpoint, way,
            client: """
                grant_type: password
                username: ada
                password: {file: FOLDER/password}
                allow_deprecated: true
                """)
        try await checkLogout(proxy, nginx, endpoint, way)
    }

    @Test(arguments: [Way.plain, .tls])
    func `after the logout of a person who signed in at a browser no token is left in memory`(way: Way) async throws {
        let endpoint = try endpoint()
        let (proxy, nginx) = try await proxy(
            endpoint, way,
            client: """
                grant_type: authorization_code
                authorization_endpoint: http://127.0.0.1:1/authorize
                """)
        let (address, port, _) = try await proxy.administration()
        func get(_ target: String, _ more: String = "") async throws -> RawResponse {
            try await RawClient.exchange(port: port, "GET \(target) HTTP/1.1\r\nHost: \(address)\r\n\(more)\r\n")
        }
        let out = try await get("/login/api")
        let sent = URLComponents(string: out.field("Location") ?? "")?.queryItems ?? []
        let state = try #require(sent.first { $0.name == "state" }?.value)
        let cookie = (out.field("Set-Cookie") ?? "").prefix { $0 != ";" }
        let done = try await get("/callback?code=x&state=\(state)", "Cookie: \(cookie)\r\nConnection: close\r\n")
        #expect(done.status == 200, "\(done.text) \(proxy.log)")
        try await checkLogout(proxy, nginx, endpoint, way)
    }
}
