import Proxy
import Reports
import TestSupport
import Testing

/// TCP does not tell a client that only finished sending from one that is gone.
@Suite("a client that ended its side gives way to others, and is given up", .stopsProxies, .timeLimit(.minutes(2)))
struct EndedProgramTests {
    private static func hang(_ gate: Gate) -> RecordingOrigin.Handler {
        { exchange in
            if exchange.head.target.hasPrefix("/hang") { gate.wait() }
            try exchange.respond(body: exchange.head.target)
        }
    }

    /// `count` clients whose requests the upstream has, and that have gone.
    private static func gone(_ count: Int, _ proxy: ProxyInProcess, _ url: String = "http://api.test") async throws
        -> [RawClient]
    {
        var clients: [RawClient] = []
        for number in 0..<count {
            let client = try await proxy.connect(sending: message("GET", "\(url)/hang\(number)"))
            client.finishSending()
            clients.append(client)
        }
        return clients
    }

    @Test func `waiting clients get an ended client's connection at once, and no more than they need`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess(
            upstream: "max_connections: 4\nconnect_timeout: 1s", isLogged: true, answer: Self.hang(gate))
        _ = try await Self.gone(4, proxy)
        try await eventually("all at the upstream") { proxy.origin.requests.count == 4 }
        // Without giving way: 503 after a second.
        #expect(try await proxy.request("GET", "http://api.test/wanted").text == "/wanted")
        try await eventually("two records") { proxy.log.all.count == 2 }
        #expect(proxy.log.all.map(\.status).sorted() == [200, 499])
        #expect(
            proxy.log.all.compactMap(\.cause) == ["The client ended its side, and other requests needed a connection."])
        gate.open()
    }

    @Test func `waiting clients get an ended client's stream over HTTP 2, too`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin(Self.hang(gate))
        let nginx = try await Nginx.secure(
            locations: "location / { proxy_http_version 1.1; proxy_pass \(origin.url); }")
        let proxy = try await ProxyInProcess(
            more: secureUpstream(
                "two.test", nginx.httpsPort, nginx.authority, "http2: true, max_connections: 2, connect_timeout: 1s"))
        _ = try await Self.gone(2, proxy, "http://two.test")
        try await eventually("all at the upstream") { origin.requests.count == 2 }
        #expect(try await proxy.request("GET", "http://two.test/wanted").text == "/wanted")
        gate.open()
    }

    @Test func `waiting clients overtake an ended client in the queue`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess(
            upstream: "max_connections: 1\nconnect_timeout: 10s", answer: Self.hang(gate))
        async let first = proxy.request("GET", "http://api.test/hang")
        try await eventually("the first at the upstream") { proxy.origin.requests.count == 1 }
        let ended = try await proxy.connect(sending: message("GET", "http://api.test/ended"))
        ended.finishSending()
        let server = proxy.server
        @Sendable func waiting() async -> Int {
            await server.traffic().upstreams.reduce(0) { $0 + ($1.connections?.waiting ?? 0) }
        }
        try await eventually("one in the queue") { await waiting() == 1 }
        async let wanted = proxy.request("GET", "http://api.test/wanted")
        try await eventually("two in the queue") { await waiting() == 2 }
        gate.open()
        #expect(try await [first.status, wanted.status, ended.response().status] == [200, 200, 200])
        #expect(proxy.origin.requests.map(\.target) == ["/hang", "/wanted", "/ended"])
    }

    @Test func `a silent upstream is not kept busy for an ended client`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess(isLogged: true, answer: Self.hang(gate))
        _ = try await Self.gone(1, proxy)
        try await eventually("a record", within: .seconds(8)) { proxy.log.all.count == 1 }
        #expect(proxy.log.all[0].status == 499)
        #expect(
            proxy.log.all[0].cause == "The client ended its side, and its request made no progress for three seconds.")
        #expect(proxy.log.all[0].duration >= .seconds(3) && proxy.log.all[0].duration < .seconds(8))
        gate.open()
        try await eventually("the upstream's connection ends") { proxy.origin.connections[0].isEndedByPeer }
    }

    @Test func `an ended client is given up while its token is fetched`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, _ in
            gate.wait()
            return .token("T1")
        }
        let proxy = try await ProxyInProcess(endpoint: endpoint, isLogged: true)
        _ = try await Self.gone(1, proxy)
        try await eventually("a record", within: .seconds(8)) { proxy.log.all.count == 1 }
        #expect(proxy.log.all[0].status == 499 && proxy.log.all[0].duration < .seconds(8))
        gate.open()
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `an ended client's answer is cut when the upstream falls silent`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess(
            upstream: "max_connections: 1\nconnect_timeout: 10s", isLogged: true
        ) { exchange in
            guard exchange.head.target == "/events" else { return try exchange.respond(body: "ok") }
            try exchange.startChunked()
            try exchange.chunk("first")
            gate.wait()
        }
        let client = try await proxy.connect(sending: message("GET", "http://api.test/events"))
        _ = try await client.read(until: "first\r\n")
        client.finishSending()
        #expect(try await proxy.request().text == "ok")
        try await eventually("two records") { proxy.log.all.count == 2 }
        // It did not give way: the client had a part of its answer.
        #expect(
            proxy.log.all[0].cause == "The client ended its side, and its request made no progress for three seconds.")
        #expect(proxy.log.all[0].status == 0)
        gate.open()
    }

    @Test func `an ended client's answer that goes on is not cut, and neither is a client that reads late`()
        async throws
    {
        let size = 8 << 20
        let proxy = try await ProxyInProcess { exchange in
            guard exchange.head.target == "/drip" else { return try exchange.flood(size) }
            try exchange.startChunked()
            // Time itself: longer than the three seconds after which a request without progress is cut.
            for _ in 0..<14 {
                exchange.pause(.milliseconds(250))
                try exchange.chunk("drop")
            }
            try exchange.lastChunk()
        }
        let late = try await proxy.connect(receiveBuffer: 4096, sending: message("GET", "http://api.test/flood"))
        late.finishSending()
        let drip = try await proxy.connect(sending: message("GET", "http://api.test/drip"))
        drip.finishSending()
        #expect(try await drip.response().text == String(repeating: "drop", count: 14))
        // More than three seconds in which the other one took nothing.
        #expect(try await late.readToEnd().count > size)
    }
}
