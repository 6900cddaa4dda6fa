import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("what is secret leaves the memory", .timeLimit(.minutes(5)))
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

    /// Its files last as long as it does.
    private struct Ground {
        var proxy: RunningProxy
        var nginx: Nginx
        var authority: PrivateCA?
    }

    /// Everything by way of nginx, which ends TLS where there is any.
    private func proxy(_ endpoint: TokenEndpoint, _ way: Way, client lines: String) async throws -> Ground {
        var authority: PrivateCA?
        var certificate: PrivateCA.Certificate?
        if way == .tls || way == .http2 {
            let made = try await PrivateCA()
            (authority, certificate) = (made, try await made.server())
        }
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
        let more = way == .query ? ", inject: {query: access_token}, allow_deprecated: true" : ""
        let proxy = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0"}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            \(authority.map { "tls: {ca_file: \($0.certificateFile)}" } ?? "")
            clients:
              api:
                token_endpoint: \(api)/oauth/token
                revocation_endpoint: \(api)/oauth/revoke
                client_id: end-to-end
                client_secret: {file: FOLDER/secret}
                allow_plaintext: true
            \(lines.indented(4))
            upstreams:
              - {host: api.test, url: "\(api)", client: api, allow_plaintext: true, http2: \(way == .http2)\(more)}
            """,
            files: ["secret": client, "password": password])
        return Ground(proxy: proxy, nginx: nginx, authority: authority)
    }

    /// Uses the token, signs out, and looks for what was secret.
    private func checkLogout(_ ground: Ground, _ endpoint: TokenEndpoint, _ way: Way) async throws {
        let (proxy, nginx) = (ground.proxy, ground.nginx)
        let program = try await RawClient.connect(port: proxy.port)
        for number in 0..<5 {
            try await program.send("GET http://api.test/\(number) HTTP/1.1\r\nHost: api.test\r\n\r\n")
            #expect(try await program.response().status == 200)
            #expect(try await proxy.get("http://api.test/once").status == 200)
        }
        #expect(try nginx.accessLog().contains(way == .query ? "access_token=\(access)" : "Bearer \(access)"))
        // What is in use is there, or the search would find nothing that is.
        #expect(try !ProcessMemory(of: proxy.process.pid).findings(of: access).isEmpty)
        let socket = proxy.directory.path(of: "admin.sock")
        let out = try await RunningProxy.run(["logout", "--socket", socket, "api"])
        #expect(out.ending == .exited(0), "\(out.transcript)")
        #expect(endpoint.requests.contains { $0["token"] == refresh })
        let memory = ProcessMemory(of: proxy.process.pid)
        for (name, secret) in [
            ("the access token", access), ("the refresh token", refresh), ("the id token", id),
            ("the Basic credential", "end-to-end:\(client)".base64), ("the client's secret", client),
            ("the password", password),
        ] {
            // libnghttp2 gives heads back as they were.
            if way == .http2, secret == access { continue }
            var left: [ProcessMemory.Finding] = []
            // What is under way comes to its end first.
            for _ in 0..<20 {
                left = try memory.findings(of: secret)
                if left.isEmpty { break }
                try await Task.sleep(for: .milliseconds(200))
            }
            let text = left.map { "\n  \($0)" }.joined()
            #expect(left.isEmpty, "\(name) is there \(left.count) times:\(text)")
        }
        withExtendedLifetime((program, ground)) {}
    }

    @Test(arguments: Way.allCases)
    func `after a logout no token is left, nor anything of what brought it`(way: Way) async throws {
        let endpoint = try endpoint()
        let ground = try await proxy(
            endpoint, way,
            client: """
                grant_type: password
                username: ada
                password: {file: FOLDER/password}
                allow_deprecated: true
                """)
        try await checkLogout(ground, endpoint, way)
    }

    @Test(arguments: [Way.plain, .tls])
    func `the same for a person who signed in at a browser`(way: Way) async throws {
        let endpoint = try endpoint()
        let ground = try await proxy(
            endpoint, way,
            client: """
                grant_type: authorization_code
                authorization_endpoint: http://127.0.0.1:1/authorize
                """)
        let proxy = ground.proxy
        let line = try await eventually("the administration listens") {
            proxy.log.split(separator: "\n").first { $0.contains(" info administration ") }
        }
        let address = line.split(separator: " ").first { $0.hasPrefix("address=") }?.dropFirst("address=".count) ?? ""
        let port = UInt16(address.split(separator: ":").last ?? "") ?? 0
        func get(_ target: String, _ more: String = "") async throws -> RawResponse {
            try await RawClient.exchange(port: port, "GET \(target) HTTP/1.1\r\nHost: \(address)\r\n\(more)\r\n")
        }
        let out = try await get("/login/api")
        let sent = URLComponents(string: out.field("Location") ?? "")?.queryItems ?? []
        let state = try #require(sent.first { $0.name == "state" }?.value)
        let cookie = (out.field("Set-Cookie") ?? "").prefix { $0 != ";" }
        let done = try await get("/callback?code=x&state=\(state)", "Cookie: \(cookie)\r\nConnection: close\r\n")
        #expect(done.status == 200, "\(done.text) \(proxy.log)")
        try await checkLogout(ground, endpoint, way)
    }
}
