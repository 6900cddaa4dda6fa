import Foundation
import TestSupport
import Testing

@Suite("what becomes of tokens at a server of somebody else's", .timeLimit(.minutes(3)))
struct TokenLifeTests {
    private static let password = """
        grant_type: password
        allow_deprecated: true
        client_id: \(DjangoOAuthToolkit.person.id)
        client_secret: {file: FOLDER/secret}
        username: \(DjangoOAuthToolkit.user.name)
        password: {file: FOLDER/password}
        """
    private static let seeded = """
        grant_type: refresh_token
        client_id: \(DjangoOAuthToolkit.person.id)
        client_secret: {file: FOLDER/secret}
        refresh_token: {file: FOLDER/refresh}
        """

    private func proxy(
        _ server: DjangoOAuthToolkit, client: String, refreshToken: String = "", more: String = ""
    ) async throws -> RunningProxy {
        try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: server.tokenEndpoint, client: client,
                upstreams: ProxyConfiguration.upstream(url: server.url), more: more,
                files: [
                    "secret": DjangoOAuthToolkit.person.secret, "password": DjangoOAuthToolkit.user.password,
                    "refresh": refreshToken,
                ]))
    }

    private func get(_ proxy: RunningProxy) async throws -> RawResponse { try await proxy.get("http://api.test/api/x") }

    @Test func `an access token that the server has forgotten costs one refresh, and no program notices`() async throws
    {
        let server = try await DjangoOAuthToolkit()
        let proxy = try await proxy(server, client: Self.password)
        #expect(try await get(proxy).status == 200)
        try await server.forgetAccessTokens()
        #expect(try await get(proxy).status == 200)
        try await eventually("the server's log") { server.tokenRequests == 2 }
        #expect(try await server.tokens().refreshRevoked == 1, "it was a refresh")
    }

    @Test func `a refresh token revoked at the server is followed by a fresh grant, where that needs nobody`()
        async throws
    {
        let server = try await DjangoOAuthToolkit()
        let proxy = try await proxy(server, client: Self.password)
        #expect(try await get(proxy).status == 200)
        try await server.revokeRefreshTokens()
        #expect(try await get(proxy).status == 200)
        // The first grant, the refresh that was refused, the second grant.
        try await eventually("the server's log") { server.tokenRequests == 3 }
        #expect(try await server.tokens().refresh == 2)
    }

    @Test func `reuse kills a chain at the server: a sign-in is asked for, and a new token needs no restart`()
        async throws
    {
        let server = try await DjangoOAuthToolkit()
        let first = try await server.refreshToken()
        let proxy = try await proxy(server, client: Self.seeded, refreshToken: first)
        #expect(try await get(proxy).status == 200)
        // A thief spends the token that is spent already: the server revokes the whole chain.
        #expect(try await server.spend(first) == 400)
        #expect(try await server.tokens().refresh == server.tokens().refreshRevoked)
        let refused = try await get(proxy)
        #expect(refused.status == 503)
        #expect(refused.text.contains("login-needed"))
        try await eventually("the log says so") { proxy.log.contains("event=needs_authentication") }
        // The test's own two, the proxy's first, and the one for which the newest token was refused. The configured token,
        // which the server has replaced, is not sent again.
        try await eventually("the server's log") { server.tokenRequests == 4 }
        for _ in 0..<5 { #expect(try await get(proxy).status == 503) }
        #expect(server.tokenRequests == 4, "what was refused is not sent again")

        try proxy.directory.write(try await server.refreshToken(), to: "refresh")
        try await eventually("recovery", within: .seconds(60)) { try await get(proxy).status == 200 }
    }

    @Test func `two proxies with one store share a chain that any reuse would kill`() async throws {
        let server = try await DjangoOAuthToolkit(accessTokenSeconds: 4)
        let folder = try TemporaryDirectory()
        let keygen = try await RunningProxy.run(["keygen", "--output", folder.path(of: "store.key")])
        #expect(keygen.ending == .exited(0), "\(keygen.errors)")
        let store = "store: {kind: file, directory: \(folder.path)/state, key: {file: \(folder.path)/store.key}}"
        let first = try await server.refreshToken()
        let proxies = [
            try await proxy(server, client: Self.seeded, refreshToken: first, more: store),
            try await proxy(server, client: Self.seeded, refreshToken: first, more: store),
        ]
        try await eventually("four rotations", within: .seconds(60)) {
            for (number, proxy) in proxies.enumerated() {
                let response = try await get(proxy)
                #expect(response.status == 200, "proxy \(number): \(response.text) \(proxy.log)")
            }
            return try await server.tokens().refreshRevoked >= 4
        }
        let tokens = try await server.tokens()
        #expect(tokens.refresh - tokens.refreshRevoked == 1, "the chain is alive")
        for proxy in proxies { #expect(!proxy.log.contains("event=token_failed"), "\(proxy.log)") }
    }
}

@Suite("a token endpoint's failures", .timeLimit(.minutes(2)))
struct TokenFailureReportTests {
    @Test func `each failure of a token endpoint is in status, an event, a metric and one log line, without secrets`()
        async throws
    {
        // A server that echoes its input.
        let description = "client \(clientSecret) is unknown"
        let faults: [(name: String, words: String, endpoint: TokenEndpoint)] = [
            ("down", "it answered 500", try TokenEndpoint([.status(500)])),
            (
                "refused", "invalid_client",
                try TokenEndpoint([.error("invalid_client", status: 401, description: description)])
            ),
            ("empty", "empty", try TokenEndpoint([.status(200)])),
            ("gone", "redirect (302)", try TokenEndpoint([.redirect(302, to: "https://elsewhere.example/")])),
            ("expired", "expired", try TokenEndpoint([.token("short-lived-token-1234", expiresIn: "0")])),
            ("mute", "time", try TokenEndpoint([.silence])),
        ]
        let clients = faults.map {
            ProxyConfiguration.client($0.name, tokenEndpoint: $0.endpoint.url, "timeout: 1s")
        }
        let upstreams = faults.map {
            "  - {host: \($0.name).test, url: \"http://127.0.0.1:1\", client: \($0.name), allow_plaintext: true}"
        }
        let proxy = try await RunningProxy(ProxyConfiguration(admin: "", clients: clients, upstreams: upstreams))
        let port = try await proxy.administration().port
        func page(_ path: String) async throws -> String {
            try await RawClient.exchange(
                port: port, "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            ).text
        }
        for fault in faults {
            @Sendable func lines() -> Int {
                proxy.log.split(separator: "\n", omittingEmptySubsequences: false).dropLast().filter {
                    $0.contains("client=\(fault.name) ") && $0.contains("event=token_failed")
                        && $0.contains(fault.words)
                }.count
            }
            try await eventually("a line of the log: \(fault.name) \(proxy.log)") { lines() > 0 }
            let (before, logged, after) = (fault.endpoint.requests.count - 1, lines(), fault.endpoint.requests.count)
            #expect(before <= logged && logged <= after, "\(fault.name): one line a failure")
        }
        let status = try JSONSerialization.jsonObject(with: Data(try await page("/status").utf8)) as? [String: Any]
        let listed = try #require(status?["clients"] as? [[String: Any]])
        let metrics = try await page("/metrics")
        for fault in faults {
            let client = try #require(listed.first { $0["client"] as? String == fault.name })
            let error = try #require(client["last_error"], "\(fault.name)")
            #expect("\(error)".contains(fault.words), "\(fault.name): \(error)")
            let counted = metrics.split(separator: "\n").first {
                $0.hasPrefix("heimdallr_token_events_total{") && $0.contains("client=\"\(fault.name)\"")
                    && $0.contains("event=\"token_failed\"")
            }
            #expect(Double(counted?.split(separator: " ").last ?? "") ?? 0 >= 1, "\(fault.name)")
            let succeeded = metrics.split(separator: "\n").filter {
                $0.hasPrefix("heimdallr_token_requests_total{") && $0.contains("client=\"\(fault.name)\"")
                    && $0.contains("result=\"success\"") && !$0.hasSuffix(" 0")
            }
            #expect(succeeded == [], "\(fault.name)")
        }
        let reader = try await RawClient.connect(port: port)
        try await reader.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let events = try await reader.read(until: "event: token_failed", within: .seconds(60))
        let shown = proxy.log + metrics + events + (try await page("/status"))
        for secret in [clientSecret, clientSecret.base64, "short-lived-token-1234"] { #expect(!shown.contains(secret)) }
    }
}
