import TestSupport
import Testing

@Suite("one client's token requests, and everybody else's", .timeLimit(.minutes(5)))
struct TokenFairnessTests {
    /// Clients that exchange each caller's own token, with an upstream `NAME.test` each.
    private func proxy(
        exchanging callers: [(name: String, endpoint: TokenEndpoint)],
        own: [(name: String, endpoint: TokenEndpoint)] = [], to origin: RecordingOrigin, timeout: String = "5s"
    ) async throws -> RunningProxy {
        try await RunningProxy(
            ProxyConfiguration(
                clients: callers.map {
                    ProxyConfiguration.client(
                        $0.name, tokenEndpoint: $0.endpoint.url,
                        "grant_type: token-exchange\nsubject_token: caller\ntimeout: \(timeout)")
                } + own.map { ProxyConfiguration.client($0.name, tokenEndpoint: $0.endpoint.url) },
                upstreams: (callers + own).map { client in
                    """
                      - host: \(client.name).test
                        url: \(origin.url)
                        client: \(client.name)
                        allow_plaintext: true
                        token_wait: 60s
                    """
                }))
    }

    private func get(_ proxy: RunningProxy, _ name: String, as caller: String? = nil) async throws -> RawResponse {
        try await proxy.get("http://\(name).test/", fields: caller.map { [("Authorization", "Bearer \($0)")] } ?? [])
    }

    /// Connections of callers that wait for a token each.
    private func crowd(_ count: Int, at name: String, of proxy: RunningProxy) async throws -> [RawClient] {
        var crowd: [RawClient] = []
        for number in 0..<count {
            let client = try await RawClient.connect(port: proxy.port)
            try await client.send(
                "GET http://\(name).test/ HTTP/1.1\r\nHost: \(name).test\r\nAuthorization: Bearer made-up-\(number)\r\n\r\n"
            )
            crowd.append(client)
        }
        return crowd
    }

    @Test func `120 made-up tokens at a hung issuer delay no caller of another client, and leave no request behind`()
        async throws
    {
        let gate = Gate()
        defer { gate.open() }
        let hung = try TokenEndpoint { _, _ in
            gate.wait()
            return .token(TokenEndpoint.plainToken)
        }
        let (healthy, origin) = (try TokenEndpoint.plain(), try RecordingOrigin())
        let proxy = try await proxy(exchanging: [("hung", hung), ("api", healthy)], to: origin, timeout: "60s")
        let callers = try await crowd(120, at: "hung", of: proxy)
        _ = try await hung.requests(12)
        for number in 0..<5 {
            #expect(try await get(proxy, "api", as: "caller-\(number)").status == 200)
        }
        #expect(hung.requests.count == 12)
        for caller in callers { caller.resetOnClose() }
        _ = consume callers
        try await eventually("all have left") { proxy.log.ranges(of: "status=499").count == 120 }
        // The next request sent is that of a new caller: those of the callers that left were given up.
        let late = try await RawClient.connect(port: proxy.port)
        try await late.send("GET http://hung.test/ HTTP/1.1\r\nHost: hung.test\r\nAuthorization: Bearer late\r\n\r\n")
        gate.open()
        #expect(try await hung.requests(13)[12]["subject_token"] == "late")
    }

    @Test func `40 clients at one hung issuer delay no other client's first token`() async throws {
        let (hung, healthy) = (try TokenEndpoint([.silence]), try TokenEndpoint.plain())
        let origin = try RecordingOrigin()
        let proxy = try await proxy(
            exchanging: [], own: (0..<40).map { ("hung\($0)", hung) } + [("api", healthy)], to: origin)
        #expect(try await get(proxy, "api").status == 200)
        _ = try await hung.requests(16)
        #expect(hung.requests.count <= 32, "16 at a time")
        #expect(hung.mostAtOnce == 16)
    }

    @Test func `250 simultaneous callers at a server that takes 200 ms are all served`() async throws {
        let server = try TokenEndpoint([.token(TokenEndpoint.plainToken, delay: .milliseconds(200))])
        let origin = try RecordingOrigin()
        let proxy = try await proxy(exchanging: [("api", server)], to: origin)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<250 { group.addTask { try await get(proxy, "api", as: "caller-\(number)").status } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 250))
        #expect(server.mostAtOnce == 12)
    }
}
