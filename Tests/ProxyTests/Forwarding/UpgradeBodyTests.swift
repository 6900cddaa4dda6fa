import TestSupport
import Testing

@Suite("an offer of an upgrade with a body is passed on once the body is whole", .stopsProxies, .timeLimit(.minutes(1)))
struct UpgradeBodyTests {
    private static let body = #"{"Detach":false,"Tty":false}"#

    /// As `docker exec` asks.
    private static func head(_ framing: String, _ more: String = "") -> String {
        """
        POST http://ws.test/v1.46/exec/1/start HTTP/1.1\r
        Host: ws.test\r
        Connection: Upgrade\r
        Upgrade: tcp\r
        Content-Type: application/json\r
        \(framing)\r
        \(more)\r

        """
    }

    private static let accepted = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
    private static let length = "Content-Length: \(body.utf8.count)"

    private func check(_ client: RawClient, _ end: RawClient) async throws {
        try await end.send(Self.accepted + "hello")
        let response = try await client.response(to: "POST")
        #expect((response.status, response.field("Upgrade")) == (101, "tcp"))
        #expect(try await client.read(count: 5) == Array("hello".utf8))
        try await client.send("input")
        #expect(try await end.read(count: 5) == Array("input".utf8))
        end.finishSending()
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test(arguments: [true, false]) func `an upgrade's body goes out whole, whether it comes at once or piece by piece`(
        atOnce: Bool
    ) async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: Self.head(Self.length) + (atOnce ? Self.body : ""))
        if !atOnce {
            try await client.isDelivered()
            try await proxy.isCaughtUp()
            try await client.send(String(Self.body.prefix(10)))
            #expect(try await !far.isAwaited())
            try await client.send(String(Self.body.dropFirst(10)))
        }
        let end = try await far.accept()
        let head = try await end.read(until: "\r\n\r\n")
        for line in ["Connection: Upgrade", "Upgrade: tcp", Self.length, "Authorization: Bearer T1"] {
            #expect(head.contains("\r\n\(line)\r\n"), "\(head)")
        }
        #expect(try await end.read(count: Self.body.utf8.count) == Array(Self.body.utf8))
        try await check(client, end)
    }

    @Test func `an upgrade's chunked body goes out as one chunk`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: Self.head("Transfer-Encoding: chunked") + "2\r\n{}\r\n")
        try await client.send("1\r\n \r\n0\r\n\r\n")
        let end = try await far.accept()
        #expect(try await end.read(until: "\r\n\r\n").contains("\r\nTransfer-Encoding: chunked\r\n"))
        #expect(try await end.read(until: "0\r\n\r\n") == "3\r\n{} \r\n0\r\n\r\n")
        try await check(client, end)
    }

    @Test func `a client that waits for 100 before an upgrade's body gets it`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: Self.head(Self.length, "Expect: 100-continue\r\n"))
        #expect(try await client.response(to: "POST").status == 100)
        try await client.send(Self.body)
        let end = try await far.accept()
        _ = try await end.read(until: Self.body)
        try await check(client, end)
    }

    @Test func `a 401 to an upgrade gets a new token, and the body once more`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: Self.head(Self.length) + Self.body)
        let first = try await far.accept()
        _ = try await first.read(until: Self.body)
        try await first.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
        let end = try await far.accept()
        #expect(try await end.read(until: Self.body).contains("Bearer T2\r\n"))
        try await check(client, end)
    }

    @Test func `an answer without the upgrade leaves the connection as it was`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let client = try await proxy.connect(sending: Self.head(Self.length) + Self.body)
        let end = try await far.accept()
        _ = try await end.read(until: Self.body)
        try await end.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
        #expect(try await client.response(to: "POST").text == "no")
        try await client.send(message("GET", "http://api.test/next"))
        #expect(try await client.response().text == "ok")
    }

    @Test(arguments: [length, "Transfer-Encoding: chunked"])
    func `bytes behind an upgrade's body are no other protocol's, and the request is not sent`(framing: String)
        async throws
    {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let body = framing == Self.length ? Self.body : "2\r\n{}\r\n0\r\n\r\n"
        let client = try await proxy.connect(
            sending: Self.head(framing) + body + message("GET", "http://api.test/smuggled"))
        try expectProblem(try await client.response(to: "POST"), "bytes-before-upgrade", upstream: "ws.test")
        #expect(try await client.readToEnd().isEmpty)
        #expect(try await !far.isAwaited())
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test(arguments: ["Content-Length: 2000", "Transfer-Encoding: chunked"])
    func `an upgrade's body that is too long is refused, with the key's name`(framing: String) async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading(upstream: "max_replay_bytes: 1KiB")
        let client = try await proxy.connect(
            sending: Self.head(framing) + (framing.hasPrefix("C") ? "" : "7D0\r\n")
                + String(repeating: "x", count: 2000))
        let response = try await client.response(to: "POST")
        try expectProblem(response, "body-too-large", upstream: "ws.test")
        #expect(response.status == 413 && response.reason.contains("max_replay_bytes"))
        #expect(try await !far.isAwaited())
    }
}
