import TestSupport
import Testing

@Suite("a client that ends its side gets the answers to all it has asked", .stopsProxies, .timeLimit(.minutes(1)))
struct HalfCloseTests {
    private static let whole = ["", "Content-Length: 5", "Transfer-Encoding: chunked"]

    private static func request(_ framing: String, version: String = "1.1", path: String = "/") -> String {
        let body = framing.isEmpty ? "" : framing.hasPrefix("C") ? "hello" : "5\r\nhello\r\n0\r\n\r\n"
        let line = framing.isEmpty ? "" : "\(framing)\r\n"
        return "POST http://api.test\(path) HTTP/\(version)\r\nHost: api.test\r\n\(line)\r\n\(body)"
    }

    @Test(arguments: whole, [true, false])
    func `a client that ends its side while the upstream thinks gets its answer`(framing: String, atOnce: Bool)
        async throws
    {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            try exchange.readBody()
            gate.wait()
            try exchange.respond(body: "the answer")
        }
        let client = try await proxy.connect(sending: Self.request(framing))
        if atOnce { client.finishSending() }
        _ = try await proxy.origin.completeRequests(1)
        if !atOnce { client.finishSending() }
        try await client.isDelivered()
        try await proxy.isCaughtUp()
        gate.open()
        #expect(try await client.response().text == "the answer")
        #expect(try await client.readToEnd(within: .seconds(2)).isEmpty)
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `three hundred clients that end their side at once get their answers`() async throws {
        let proxy = try await ProxyInProcess { try $0.respond(body: "ok") }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<300 {
                group.addTask {
                    let client = try await proxy.connect(sending: Self.request(Self.whole[number % 3]))
                    client.finishSending()
                    return try await client.response().status
                }
            }
            var answered = 0
            for try await status in group { answered += status == 200 ? 1 : 0 }
            #expect(answered == 300)
        }
    }

    @Test func `a client that ends its side while a token is fetched gets its answer`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, _ in
            gate.wait()
            return .token("T1")
        }
        let proxy = try await ProxyInProcess(endpoint: endpoint)
        let client = try await proxy.connect(sending: message())
        _ = try await endpoint.requests(1)
        client.finishSending()
        try await client.isDelivered()
        try await proxy.isCaughtUp()
        gate.open()
        #expect(try await client.response().status == 200)
        #expect(try await client.readToEnd(within: .seconds(2)).isEmpty)
    }

    @Test func `a client that ends its side while the answer comes gets all of it`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            try exchange.startChunked()
            try exchange.chunk("first")
            gate.wait()
            try exchange.chunk("then")
            try exchange.lastChunk()
        }
        let client = try await proxy.connect(sending: message())
        _ = try await client.read(until: "first\r\n")
        client.finishSending()
        try await client.isDelivered()
        try await proxy.isCaughtUp()
        gate.open()
        #expect(try await client.readToEnd(within: .seconds(5)) == Array("4\r\nthen\r\n0\r\n\r\n".utf8))
    }

    @Test func `a client that ends its side behind several requests gets all answers`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            try exchange.readBody()
            gate.wait()
            try exchange.respond(body: exchange.head.target)
        }
        let client = try await proxy.connect()
        let paths = (0..<20).map { "/\($0)" }
        try await client.send(
            paths.enumerated().map { Self.request(Self.whole[$0.offset % 3], path: $0.element) }.joined())
        client.finishSending()
        try await client.isDelivered()
        try await proxy.isCaughtUp()
        gate.open()
        for path in paths { #expect(try await client.response().text == path) }
        #expect(try await client.readToEnd(within: .seconds(2)).isEmpty)
    }

    @Test(arguments: ["", "Connection: keep-alive\r\n"])
    func `a client of HTTP 1.0 that ends its side gets its answer`(field: String) async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            gate.wait()
            try exchange.respond(body: "old")
        }
        let client = try await proxy.connect(sending: "GET http://api.test/ HTTP/1.0\r\nHost: api.test\r\n\(field)\r\n")
        client.finishSending()
        try await client.isDelivered()
        try await proxy.isCaughtUp()
        gate.open()
        #expect(try await client.response().text == "old")
        #expect(try await client.readToEnd(within: .seconds(2)).isEmpty)
    }

    @Test func `a client that ends its side gets a refusal, too`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(sending: message("GET", "http://nobody.test/"))
        client.finishSending()
        #expect(try await client.response().status == 403)
        #expect(try await client.readToEnd(within: .seconds(2)).isEmpty)
    }

    @Test(arguments: ["Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"])
    func `a client that ends within a body is told so, and its upload never looks whole`(rest: String) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(sending: "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\(rest)")
        client.finishSending()
        try expectProblem(try await client.response(), "body-cut")
        #expect(try await client.readToEnd(within: .seconds(5)).isEmpty)
        try await eventually("the upstream's connection ends") { proxy.origin.connections.allSatisfy(\.isOver) }
        #expect(!proxy.origin.requests.contains { $0.isComplete })
    }

    @Test func `a client that ends within a body whose answer is under way is cut`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 200 Early\r\nContent-Length: 500\r\n\r\nearly")
            _ = exchange.waitForPeerToLeave()
        }
        let client = try await proxy.connect(
            sending: "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 10\r\n\r\nhello")
        _ = try await client.read(until: "early")
        client.finishSending()
        #expect(try await client.readToEnd(within: .seconds(5)).isEmpty)
    }

    @Test func `a client that ends behind an offer to upgrade is answered, too`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading()
        let (client, end) = try await proxy.askUpgrade(far)
        client.finishSending()
        try await client.isDelivered()
        try await proxy.isCaughtUp()
        try await end.send(agreement + "\r\nhello")
        #expect(try await client.response().status == 101)
        #expect(try await client.read(count: 5) == Array("hello".utf8))
        #expect(try await end.readToEnd(within: .seconds(2)).isEmpty)
    }

    @Test func `a client that is gone is noticed at the next byte for it`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            gate.wait()
            try exchange.flood(1 << 30)
        }
        let client = try await proxy.connect(sending: message())
        _ = try await proxy.origin.completeRequests(1)
        client.close()
        gate.open()
        let origin = proxy.origin
        try await eventually("the upstream's connection ends", within: .seconds(2)) { origin.connections[0].isOver }
    }
}
