import TestSupport
import Testing

@Suite("an upgrade's handshake is a request like any other, and 101 its answer", .stopsProxies, .timeLimit(.minutes(1)))
struct UpgradeHandshakeTests {
    // MARK: Handshake

    @Test func `a handshake goes out with the token and its own fields, hop-by-hop ones made anew`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: handshake(fields: ["Authorization: Bearer mine"]))
        let end = try await far.accept()
        let lines = try await end.read(until: "\r\n\r\n").split(separator: "\r\n").map(String.init)
        #expect(lines[0] == "GET /chat?x=1 HTTP/1.1")
        #expect(
            Set(lines.dropFirst()) == [
                "Host: 127.0.0.1:\(far.port)", "Connection: Upgrade", "Upgrade: websocket",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
                "sec-websocket-protocol: chat, superchat", "Authorization: Bearer T1", "Via: 1.1 heimdallr-proxy",
            ])
        #expect(lines.count == 9)
        try await end.send(
            agreement
                + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: chat\r\n\r\n")
        let response = try await client.response()
        #expect(response.status == 101)
        #expect(response.field("Connection") == "Upgrade")
        #expect(response.field("Upgrade") == "websocket")
        #expect(response.field("Sec-WebSocket-Accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        #expect(response.field("Sec-WebSocket-Protocol") == "chat")
    }

    @Test func `a handshake announces no body, whatever was sent before it`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: message("POST", "http://ws.test/form", body: "amount=1000"))
        let first = try await far.accept()
        _ = try await first.read(until: "amount=1000")
        try await first.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        #expect(try await client.response(to: "POST").status == 200)
        try await client.send(handshake())
        let end = try await far.accept()
        let head = try await end.read(until: "\r\n\r\n").lowercased()
        #expect(!head.contains("content-length") && !head.contains("transfer-encoding"), "\(head)")
        try await end.send(agreement + "\r\n")
        #expect(try await client.response().status == 101)
    }

    @Test func `bytes right behind the 101 go through`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let (client, end) = try await proxy.askUpgrade(far)
        try await end.send(agreement + "\r\n" + "hello")
        #expect(try await client.response().status == 101)
        #expect(try await client.read(count: 5) == Array("hello".utf8))
    }

    @Test(arguments: ["foo/2.1", "Foo, websocket", "websocket,h2c", "WebSocket"])
    func `any protocol but HTTP can be offered in an upgrade`(offer: String) async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: handshake(upgrade: offer))
        let end = try await far.accept()
        let head = try await end.read(until: "\r\n\r\n")
        #expect(!head.contains("h2c"))
        let first = offer.split(separator: ",")[0].lowercased()
        try await end.send("HTTP/1.1 101 \r\nConnection: upgrade\r\nUpgrade: \(first)\r\n\r\n")
        let response = try await client.response()
        #expect((response.status, response.field("Upgrade")) == (101, first))
    }

    @Test(arguments: ["http", "ws", "WS"])
    func `libraries may ask by the WebSocket's own URL`(scheme: String) async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect()
        try await client.send(handshake().replacing("http://", with: "\(scheme)://"))
        #expect(try await far.accept().read(until: "\r\n\r\n").hasPrefix("GET /chat?x=1 HTTP/1.1\r\n"))
        // The upstream here is plain.
        #expect(try await proxy.send(handshake().replacing("http://", with: "wss://")).status == 400)
        #expect(try await proxy.send("GET ws://ws.test/chat HTTP/1.1\r\nHost: ws.test\r\n\r\n").status == 400)
    }

    @Test func `a base URL takes upgrades, unless a web page asks`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading(upstream: "listen: 127.0.0.1:0")
        let port = proxy.upstreamPort
        let client = try await RawClient.connect(port: port)
        let fields = "Host: localhost:\(port)\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        try await client.send("GET /x HTTP/1.1\r\n\(fields)\r\n")
        let end = try await far.accept()
        #expect(try await end.read(until: "\r\n\r\n").contains("Authorization: Bearer T1\r\n"))
        try await end.send(agreement + "\r\n")
        #expect(try await client.response().status == 101)
        let page = try await RawClient.exchange(
            port: port, "GET /x HTTP/1.1\r\n\(fields)Origin: http://evil.test\r\n\r\n")
        #expect(page.status == 403)
        #expect(try await !far.isAwaited())
    }

    @Test func `rules of the upstream hold for an upgrade`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading(
            upstream: "paths: [/chat]\non_existing: reject\ncallers: {users: [alice]}",
            proxy: "users: {alice: sesame, bob: secret}")
        let alice = "Proxy-Authorization: Basic YWxpY2U6c2VzYW1l"
        let bob = "Proxy-Authorization: Basic Ym9iOnNlY3JldA=="
        let refused = [
            (try await proxy.send(handshake()), 407),
            (try await proxy.send(handshake("http://ws.test/other", fields: [alice])), 403),
            (try await proxy.send(handshake(fields: [bob])), 403),
            (try await proxy.send(handshake(fields: [alice, "Authorization: Bearer mine"])), 403),
        ]
        for (response, status) in refused {
            #expect(response.status == status)
            #expect(response.field("Connection") == "close")
        }
        #expect(try await !far.isAwaited())
        let client = try await proxy.connect()
        try await client.send(handshake(fields: [alice]))
        #expect(try await far.accept().read(until: "\r\n\r\n").contains("Bearer T1"))
    }

    // MARK: Not agreed

    @Test(arguments: [302, 400, 403, 426, 503])
    func `an answer that refuses an upgrade passes as it is, and ends the connection`(status: Int) async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let (client, end) = try await proxy.askUpgrade(far)
        try await end.send("HTTP/1.1 \(status) No\r\nContent-Length: 4\r\nX-Why: so\r\n\r\nbody")
        let response = try await client.response()
        #expect((response.status, response.text, response.field("X-Why")) == (status, "body", "so"))
        #expect(response.field("Connection") == "close")
        #expect(try await client.readToEnd().isEmpty)
        #expect(try await end.readToEnd().isEmpty)
    }

    @Test func `a chunked answer that refuses an upgrade passes, too`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let (client, end) = try await proxy.askUpgrade(far)
        try await end.send("HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
        #expect(try await client.response().text == "body")
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "HTTP/1.1 204 No\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    ])
    func `a success that ignores the offer of an upgrade keeps the connection`(answer: String) async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let (client, end) = try await proxy.askUpgrade(far)
        try await end.send(answer)
        let response = try await client.response()
        #expect(response.field("Connection") == nil)
        for _ in 0..<2 {
            try await client.send(message("GET", "http://api.test/next"))
            #expect(try await client.response().text == "ok")
        }
        try await client.send(handshake())
        let again = try await far.accept()
        _ = try await again.read(until: "\r\n\r\n")
        try await again.send(agreement + "\r\n")
        #expect(try await client.response().status == 101)
    }

    @Test func `a 401 to a handshake gets a new token and the handshake once more`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: handshake())
        let first = try await far.accept()
        #expect(try await first.read(until: "\r\n\r\n").contains("Authorization: Bearer T1\r\n"))
        try await first.send("HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nbody")
        let second = try await far.accept()
        #expect(try await second.read(until: "\r\n\r\n").contains("Authorization: Bearer T2\r\n"))
        try await second.send(agreement + "\r\n")
        #expect(try await client.response().status == 101)
        try await client.send("x")
        #expect(try await second.read(count: 1) == Array("x".utf8))
    }

    @Test func `with on_unauthorized: pass a handshake's 401 passes, and the next one gets a new token`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading(upstream: "on_unauthorized: pass")
        let client = try await proxy.connect(sending: handshake())
        let first = try await far.accept()
        _ = try await first.read(until: "\r\n\r\n")
        try await first.send("HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nbody")
        #expect(try await client.response().status == 401)
        let again = try await proxy.connect()
        try await again.send(handshake())
        #expect(try await far.accept().read(until: "\r\n\r\n").contains("Authorization: Bearer T2\r\n"))
    }

    @Test(arguments: [
        "HTTP/1.1 101 X\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 101 X\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 X\r\nUpgrade: \r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 X\r\nUpgrade: websocket, other\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 X\r\nUpgrade: a b\r\nConnection: Upgrade\r\n\r\n",
    ])
    func `a 101 to another protocol than the offered one is refused`(answer: String) async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let (client, end) = try await proxy.askUpgrade(far)
        try await end.send(answer)
        try expectProblem(try await client.response(), "unasked-upgrade", upstream: "ws.test")
        #expect(try await client.readToEnd().isEmpty)
        #expect(try await end.readToEnd().isEmpty)
    }

    @Test(arguments: [
        "GET /x HTTP/1.0\r\nHost: ws.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
        "GET /x HTTP/1.1\r\nHost: ws.test\r\nUpgrade: websocket\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2, HTTP/2.0\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\nUpgrade: web socket\r\n\r\n",
        "HEAD /x HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ])
    func `an offer that can't be kept is left out, and a 101 to it is refused`(request: String) async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: request)
        let end = try await far.accept()
        let head = try await end.read(until: "\r\n\r\n").lowercased()
        #expect(!head.contains("\r\nupgrade:"))
        #expect(!head.contains("\r\nconnection:"))
        try await end.send(agreement + "\r\n")
        let response = try await client.response(to: request.hasPrefix("HEAD") ? "HEAD" : "GET")
        #expect(response.status == 502)
    }

    @Test func `bytes of the client from before the 101 are not passed on`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        // Together with the request: not even asked.
        let hasty = try await proxy.connect(sending: handshake() + "GET /smuggled HTTP/1.1\r\nHost: ws.test\r\n\r\n")
        try expectProblem(try await hasty.response(), "bytes-before-upgrade", upstream: "ws.test")
        #expect(try await hasty.readToEnd().isEmpty)
        #expect(try await !far.isAwaited())
        // Before the answer.
        let early = try await proxy.connect(sending: handshake())
        let end = try await far.accept()
        _ = try await end.read(until: "\r\n\r\n")
        try await early.send("too early")
        try await early.isDelivered()
        try await proxy.isCaughtUp()
        try await end.send(agreement + "\r\n")
        try expectProblem(try await early.response(), "bytes-before-upgrade", upstream: "ws.test")
        #expect(try await end.readToEnd().isEmpty)
    }

    @Test(arguments: ["403 No", "200 OK"])
    func `behind any answer to an offer, bytes that came before it are not read as a request`(status: String)
        async throws
    {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let (client, end) = try await proxy.askUpgrade(far)
        try await client.send(message("GET", "http://api.test/smuggled"))
        try await client.isDelivered()
        try await proxy.isCaughtUp()
        try await end.send("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n")
        #expect(try await client.response().field("Connection") == "close")
        #expect(try await client.readToEnd().isEmpty)
        #expect(proxy.origin.requests.isEmpty)
    }
}
