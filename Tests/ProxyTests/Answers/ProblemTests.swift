import TestSupport
import Testing

@Suite(
    "every way to fail has its status, its Proxy-Status and a problem that says what to do", .stopsProxies,
    .timeLimit(.minutes(1)))
struct ProblemTests {
    @Test func `a name that does not resolve is the problem dns`() async throws {
        let proxy = try await ProxyInProcess(more: Self.leg("http://does-not-exist.invalid"))
        try expectProblem(try await Self.ask(proxy), "dns", upstream: "leg.test")
    }

    @Test func `a port where nobody listens is the problem connection-refused`() async throws {
        let proxy = try await ProxyInProcess(more: Self.leg("http://127.0.0.1:\(try freePort())"))
        try expectProblem(try await Self.ask(proxy), "connection-refused", upstream: "leg.test")
    }

    @Test func `a host that does not take the connection is the problem connection-timeout`() async throws {
        let deaf = try DeafPort()
        let proxy = try await ProxyInProcess(
            more: Self.leg("http://127.0.0.1:\(deaf.port)", "connect_timeout: 200ms"))
        try expectProblem(try await Self.ask(proxy), "connection-timeout", upstream: "leg.test")
    }

    @Test func `a certificate of an unknown authority is the problem tls-certificate`() async throws {
        let nginx = try await Nginx.secure()
        let proxy = try await ProxyInProcess(more: Self.leg("https://127.0.0.1:\(nginx.httpsPort)"))
        try expectProblem(try await Self.ask(proxy), "tls-certificate", upstream: "leg.test")
    }

    @Test func `a port that does not speak TLS is the problem tls`() async throws {
        let plain = try await Nginx()
        let proxy = try await ProxyInProcess(more: Self.leg("https://127.0.0.1:\(plain.httpPort)"))
        try expectProblem(try await Self.ask(proxy), "tls", upstream: "leg.test")
    }

    @Test(arguments: ["", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"])
    func `an upstream that says nothing, or nothing final, is the problem response-timeout`(first: String) async throws
    {
        let proxy = try await ProxyInProcess(upstream: "response_timeout: 300ms\nidle_timeout: 100ms") { exchange in
            try exchange.send(first)
            _ = exchange.waitForPeerToLeave()
        }
        let client = try await proxy.connect(sending: message())
        if !first.isEmpty { #expect(try await client.response().status / 100 == 1) }
        try expectProblem(try await client.response(), "response-timeout")
        try await eventually("the transfer is cancelled") { proxy.origin.connections.allSatisfy(\.isEndedByPeer) }
        // The request is over, so the connection may go on.
        try await client.send(message("GET", "http://nobody.test/"))
        #expect(try await client.response().status == 403)
    }

    @Test func `an upstream that stalls within its answer is cut off`() async throws {
        let proxy = try await ProxyInProcess(upstream: "idle_timeout: 200ms") { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            _ = exchange.waitForPeerToLeave()
        }
        let client = try await proxy.connect(sending: message())
        #expect(try await client.read(until: "half").contains("Content-Length: 10"))
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test func `an upstream that closes without an answer is the problem connection-lost`() async throws {
        let proxy = try await ProxyInProcess { $0.close() }
        try expectProblem(try await proxy.request("POST", body: "x"), "connection-lost")
    }

    @Test func `requests past the upstream's max_connections wait, and not for ever`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess(upstream: "max_connections: 2\nconnect_timeout: 300ms") { exchange in
            gate.wait()
            try exchange.respond(body: "ok")
        }
        async let first = proxy.request()
        async let second = proxy.request()
        try await eventually("two requests at the origin") { proxy.origin.requests.count == 2 }
        let third = try await proxy.request()
        try expectProblem(third, "connection-limit")
        #expect(third.field("Retry-After") == "1")
        gate.open()
        #expect(try await [first.status, second.status] == [200, 200])
        #expect(proxy.origin.requests.count == 2)
    }

    // MARK: The client's fault

    @Test(arguments: ["GET /", "GET / HTTP/1.1\r\nHost: api.test\r\nX-Slow: ", "G"])
    func `a head that takes too long is the problem slow-request`(start: String) async throws {
        let proxy = try await ProxyInProcess(proxy: "header_timeout: 300ms")
        let client = try await proxy.connect(sending: start)
        let response = try await client.response()
        try expectProblem(response, "slow-request", upstream: nil)
        #expect(response.field("Connection") == "close")
        client.finishSending()
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test func `a head that dribbles on takes too long, too`() async throws {
        let proxy = try await ProxyInProcess(proxy: "header_timeout: 400ms")
        let client = try await proxy.connect(sending: "GET / HTTP/1.1\r\nHost: api.test\r\n")
        let dribble = Task {
            for number in 0..<400 {
                try await client.send("X-\(number): y\r\n")
                // Time itself: 400 fields take longer than a head may.
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        defer { dribble.cancel() }
        #expect(try await client.read(until: "\r\n").hasPrefix("HTTP/1.1 408 "))
    }

    @Test func `a request body that stalls is the problem slow-request`() async throws {
        let proxy = try await ProxyInProcess(proxy: "idle_timeout: 1s")
        try expectProblem(
            try await proxy.send("POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 10\r\n\r\nhalf"),
            "slow-request")
        try await eventually("the upstream's connection ends") { proxy.origin.connections.allSatisfy(\.isOver) }
        #expect(proxy.origin.requests.first?.isComplete == false)
    }

    @Test func `a connection without a request closes after idle_timeout, without a word`() async throws {
        let proxy = try await ProxyInProcess(proxy: "idle_timeout: 1s")
        #expect(try await proxy.connect().readToEnd().isEmpty)
        let client = try await proxy.connect(sending: message())
        #expect(try await client.response().status == 200)
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test(arguments: [
        ("X-Long: \(String(repeating: "x", count: 5000))", 431),
        (String(repeating: "X-Many: y\r\n", count: 300) + "X: y", 431),
    ])
    func `a head that is too large is a 431`(field: String, status: Int) async throws {
        let proxy = try await ProxyInProcess(proxy: "max_header_bytes: 4KiB")
        let response = try await proxy.request(fields: [field])
        try expectProblem(response, "malformed-request", status: status, upstream: nil)
        #expect(response.field("Connection") == "close")
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `a target that is too long is a 414`() async throws {
        let proxy = try await ProxyInProcess(proxy: "max_header_bytes: 4KiB")
        let response = try await proxy.request("GET", "http://api.test/\(String(repeating: "x", count: 5000))")
        try expectProblem(response, "malformed-request", status: 414, upstream: nil)
    }

    @Test func `a body whose length is too large is the problem body-too-large`() async throws {
        let proxy = try await ProxyInProcess(proxy: "max_body_bytes: 10B")
        let response = try await proxy.request("POST", body: String(repeating: "x", count: 11))
        try expectProblem(response, "body-too-large", upstream: nil)
        #expect(response.field("Connection") == "close")
        #expect(proxy.origin.requests.isEmpty)
        #expect(try await proxy.request("POST", body: String(repeating: "x", count: 10)).status == 200)
    }

    @Test func `a chunked body that turns out too large is the problem body-too-large`() async throws {
        let proxy = try await ProxyInProcess(proxy: "max_body_bytes: 10B")
        let response = try await proxy.send(
            "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "a\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n")
        try expectProblem(response, "body-too-large")
        try await eventually("the upstream's connection ends") { proxy.origin.connections.allSatisfy(\.isOver) }
        #expect(!proxy.origin.requests.contains { $0.isComplete })
    }

    @Test func `a problem in answer to HEAD has no body, and to a large upload arrives whole`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(
            sending: message("HEAD", "http://nobody.test/") + message("GET", "http://api.test/"))
        let head = try await client.response(to: "HEAD")
        #expect(head.status == 403)
        #expect((head.field("Content-Length").flatMap { Int($0) } ?? 0) > 100)
        #expect(try await client.response().text == "ok")
        // A program that sends all before it reads.
        try await client.send(
            "POST http://nobody.test/ HTTP/1.1\r\nHost: nobody.test\r\nContent-Length: \(16 << 20)\r\n\r\n")
        try await client.send([UInt8](repeating: 0x78, count: 1 << 20), times: 16, within: .seconds(20))
        try expectProblem(try await client.response(), "no-upstream", upstream: nil)
    }

    @Test func `bytes from the outside can't break out of a problem's JSON`() async throws {
        let proxy = try await ProxyInProcess(more: "- {host: '*.odd.test', url: 'http://127.0.0.1:\(try freePort())'}")
        for path in ["/\"", "/%22%0d%0a", "/<script>"] {
            let response = try await proxy.request("GET", "http://x.odd.test\(path)")
            try expectProblem(response, "connection-refused", upstream: "*.odd.test")
            #expect(!response.text.contains("script"))
        }
    }

    // MARK: The token endpoint's fault

    @Test func `a token endpoint that is down is the problem no-token, with its Retry-After`() async throws {
        let endpoint = try TokenEndpoint([.status(503, fields: [("Retry-After", "7")])])
        let proxy = try await ProxyInProcess(upstream: "token_wait: 300ms", endpoint: endpoint)
        let response = try await proxy.request()
        try expectProblem(response, "no-token")
        let seconds = try #require(response.field("Retry-After").flatMap { Int($0) })
        #expect((1...7).contains(seconds))
        #expect(proxy.origin.requests.isEmpty)
        #expect(response.text.contains("\"client\":\"api\""))
    }

    @Test func `a token endpoint that hangs holds requests no longer than token_wait`() async throws {
        let proxy = try await ProxyInProcess(upstream: "token_wait: 300ms", endpoint: try TokenEndpoint([.silence]))
        let client = try await proxy.connect(sending: message() + message("GET", "http://nobody.test/"))
        try expectProblem(try await client.response(), "no-token")
        #expect(try await client.response().status == 403)
    }

    @Test func `a token endpoint that refuses the client is the problem client-refused`() async throws {
        let endpoint = try TokenEndpoint([.error("invalid_client", status: 401, description: "secret words")])
        let proxy = try await ProxyInProcess(endpoint: endpoint)
        let response = try await proxy.request()
        try expectProblem(response, "client-refused")
        #expect(!response.text.contains("secret words"))
        for _ in 0..<10 { #expect(try await proxy.request().status == 502) }
        #expect(endpoint.requests.count <= 2)
        #expect(proxy.origin.requests.isEmpty)
    }

    // MARK: Inside

    private static func leg(_ url: String, _ more: String = "") -> String {
        "- host: leg.test\n  url: \(url)\n\(more.indented(2))"
    }

    private static func ask(_ proxy: ProxyInProcess) async throws -> RawResponse {
        try await proxy.request("GET", "http://leg.test/")
    }
}
