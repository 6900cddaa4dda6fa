import Glibc
import TestSupport
import Testing

@Suite("the life of the process and of an exchange", .timeLimit(.minutes(3)))
struct LifeTests {
    @Test func `SIGTERM finishes what is in flight, accepts nothing more, and exits 0`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            try exchange.startChunked()
            try exchange.chunk("first")
            gate.wait()
            try exchange.chunk("second")
            try exchange.lastChunk()
        }
        defer { gate.open() }
        let proxy = try await RunningProxy(to: origin, proxy: "drain_timeout: 60s")
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        let begun = try await client.read(until: "first")
        #expect(begun.hasPrefix("HTTP/1.1 200 "))
        proxy.process.signal(SIGTERM)
        try await refusesConnections(proxy.port)
        #expect(proxy.process.ending == nil)
        gate.open()
        let rest = String(decoding: try await client.readToEnd(), as: UTF8.self)
        #expect(rest.contains("second"))
        #expect(rest.hasSuffix("0\r\n\r\n"))
        #expect(try await proxy.process.ended() == .exited(0))
    }

    @Test func `SIGTERM ends idle keep-alive connections at once`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, proxy: "drain_timeout: 10m")
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(try await client.response().status == 200)
        #expect(try await proxy.terminate() == .exited(0))
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test func `after drain_timeout what is left is cut, and the exit code is 0`() async throws {
        let origin = try RecordingOrigin { _ = $0.waitForPeerToLeave() }
        let proxy = try await RunningProxy(to: origin, proxy: "drain_timeout: 1s")
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        try await eventually("the request arrives") { origin.requests.count == 1 }
        #expect(try await proxy.terminate() == .exited(0))
    }

    @Test func `a request that drain_timeout cuts is told, and logged, that the proxy stops`() async throws {
        let origin = try RecordingOrigin { _ = $0.waitForPeerToLeave() }
        let proxy = try await RunningProxy(to: origin, proxy: "drain_timeout: 300ms")
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        try await eventually("the request arrives") { origin.requests.count == 1 }
        #expect(try await proxy.terminate() == .exited(0))
        let output = String(decoding: try await client.readToEnd(), as: UTF8.self)
        #expect(output.hasPrefix("HTTP/1.1 503 Send the request again: this proxy is stopping"), "\(output)")
        #expect(proxy.log.contains("status=503") && proxy.log.contains("stopping"), "\(proxy.log)")
        #expect(!proxy.log.contains("status=499"), "\(proxy.log)")
    }

    @Test func `a second SIGTERM ends at once what is still in flight`() async throws {
        let origin = try RecordingOrigin { _ = $0.waitForPeerToLeave() }
        let proxy = try await RunningProxy(to: origin, proxy: "drain_timeout: 10m")
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        try await eventually("the request arrives") { origin.requests.count == 1 }
        proxy.process.signal(SIGTERM)
        // The second signal counts after the first was handled: then the port refuses connections.
        try await refusesConnections(proxy.port)
        #expect(proxy.process.ending == nil)
        proxy.process.signal(SIGTERM)
        #expect(try await proxy.process.ended(within: .seconds(20)) == .exited(0))
    }

    @Test func `nothing is left behind that fires when a finished token request would have timed out`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin, client: "timeout: 250ms", proxy: "header_timeout: 250ms\nidle_timeout: 250ms",
            upstream: "connect_timeout: 250ms\nresponse_timeout: 250ms\nidle_timeout: 250ms")
        // A busy machine may be too slow once.
        try await eventually("an answer") { try await proxy.get("http://api.test/").status == 200 }
        // Time itself: longer than everything that could still be armed.
        try await Task.sleep(for: .milliseconds(290))
        #expect(try await proxy.get("http://api.test/").status == 200, "\(proxy.process.transcript)")
    }

    @Test func `several event loops share one port`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, proxy: "threads: 3")
        for number in 0..<60 { #expect(try await proxy.get("http://api.test/\(number)").status == 200) }
        #expect(proxy.tokenRequests == 1)
        #expect(try await proxy.terminate() == .exited(0))
    }

    @Test func `the environment's proxy variables change nothing where no upstream says so`() async throws {
        let origin = try RecordingOrigin()
        let nowhere = "http://127.0.0.1:\(try freePort())"
        let proxy = try await RunningProxy(
            to: origin,
            environment: ["http_proxy": nowhere, "https_proxy": nowhere, "ALL_PROXY": nowhere, "all_proxy": nowhere])
        #expect(try await proxy.get("http://api.test/").status == 200)
    }

    @Test func `the environment's proxy variables count where an upstream's proxy says so`() async throws {
        let corporate = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: "http://api.invalid", upstream: "proxy: environment", environment: ["http_proxy": corporate.url])
        #expect(try await proxy.get("http://api.test/x?y").status == 200)
        #expect(corporate.requests.map(\.line) == ["GET http://api.invalid/x?y HTTP/1.1"])
    }

    @Test func `no secret is in the log, whatever the level and whatever goes wrong`() async throws {
        let origin = try RecordingOrigin { try $0.respond($0.head.target == "/401" ? 401 : 200) }
        let good = try TokenEndpoint.plain()
        let repeating = try RecordingOrigin { exchange in
            // A server that echoes its input.
            let body = try exchange.readBody().text
            let authorization = exchange.head.field("Authorization") ?? ""
            try exchange.respond(
                400, fields: [("Content-Type", "application/json")],
                body: #"{"error":"invalid_grant","error_description":"\#(authorization) \#(body)"}"#)
        }
        let proxy = try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            log: {level: trace}
            clients:
              good: {token_endpoint: "\(good.url)", client_id: a, client_secret: {file: FOLDER/secret}, allow_plaintext: true}
              bad:
                token_endpoint: \(repeating.url)
                grant_type: password
                allow_deprecated: true
                allow_plaintext: true
                client_id: b
                client_secret: {file: FOLDER/secret}
                username: ada
                password: {env: TEST_PASSWORD}
            upstreams:
              - {host: good.test, url: "\(origin.url)", client: good, allow_plaintext: true}
              - {host: bad.test, url: "\(origin.url)", client: bad, allow_plaintext: true}
            """, files: ["secret": clientSecret], environment: ["TEST_PASSWORD": "the-password-5555"])
        var shown = ""
        for target in ["good.test/ok", "good.test/401", "bad.test/", "none.test/"] {
            let response = try await proxy.get(
                "http://\(target)",
                fields: [("Authorization", "Bearer programs-own-token"), ("Cookie", "session=cookie-777")])
            shown += "\(response.fields)\(response.text)"
        }
        #expect(try await proxy.terminate() == .exited(0))
        shown += proxy.log + proxy.process.output
        #expect(shown.contains("bad"))
        for secret in [clientSecret, token, "the-password-5555", "programs-own-token", "cookie-777"] {
            #expect(!shown.contains(secret))
            #expect(!shown.contains(secret.base64))
        }
        #expect(!shown.contains("b:\(clientSecret)".base64))
    }
}
