import TestSupport
import Testing

@testable import Administration

@Suite("what one reader may cost", .timeLimit(.minutes(2)))
struct LimitTests {
    @Test func `a head or a body that is too large ends the connection`() async throws {
        let admin = try await AdministeredProxy()
        let line = "X: \(String(repeating: "x", count: 4000))\r\n"
        for request in [
            "GET /status HTTP/1.1\r\nHost: localhost\r\n\(String(repeating: line, count: 8))\r\n",
            "GET /status HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 40_000))\r\n\r\n",
            "GET /status HTTP/1.1\r\nHost: localhost\r\n\(String(repeating: "X: y\r\n", count: 500))\r\n",
            "GET /status?\(String(repeating: "x", count: 200_000)) HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n\(String(repeating: "x", count: 200_000))",
        ] {
            let client = try await RawClient.connect(port: admin.adminPort)
            try? await client.send(request)
            let answer = String(decoding: try await client.readToEnd(), as: UTF8.self)
            #expect(!answer.hasPrefix("HTTP/1.1 200"), "\(request.prefix(60)) \(request.utf8.count)")
        }
        #expect(try await admin.get("/livez").status == 200)
    }

    @Test func `a request that does not come whole is given up`() async throws {
        let admin = try await AdministeredProxy()
        let silent = try await RawClient.connect(port: admin.adminPort)
        let half = try await RawClient.connect(port: admin.adminPort)
        try await half.send("GET /status HTTP/1.1\r\nHost: loc")
        let bodyless = try await RawClient.connect(port: admin.adminPort)
        try await bodyless.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab")
        let idle = try await RawClient.connect(port: admin.adminPort)
        try await idle.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try await idle.response().status == 200)
        let socket = try await RawClient.connect(unix: admin.socket)
        for client in [silent, half, bodyless, idle, socket] {
            _ = try await client.readToEnd(within: .seconds(40))
        }
    }

    /// All that keeps a connection without a request that could be answered.
    @Test(arguments: [
        "", "GET /status HTTP/1.1\r\nHost: loc",
        "POST /refresh/api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\na",
        "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3}",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ])
    func `probes are answered beside hundreds that keep connections and ask nothing`(bytes: String) async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        var idle: [RawClient] = []
        for _ in 0..<400 {
            let client = try await RawClient.connect(port: admin.adminPort)
            if !bytes.isEmpty { try? await client.send(bytes) }
            idle.append(client)
        }
        for path in ["/livez", "/readyz", "/metrics", "/healthz", "/status"] {
            for _ in 0..<10 {
                let begin = ContinuousClock.now
                #expect(try await admin.get(path).status == 200, "\(path)")
                #expect(begin.duration(to: .now) < .seconds(8))
            }
        }
        withExtendedLifetime(idle) {}
    }

    @Test func `whoever reads no answers, and all readers of events, leave room for probes`() async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        var clients: [RawClient] = []
        for _ in 0..<40 {
            let reader = try await RawClient.connect(port: admin.adminPort)
            try await reader.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            clients.append(reader)
        }
        let many = String(repeating: "GET /page.css HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 40)
        for _ in 0..<300 {
            let client = try await RawClient.connect(port: admin.adminPort)
            try? await client.send(many)
            clients.append(client)
        }
        for _ in 0..<20 { #expect(try await admin.get("/livez").status == 200) }
        withExtendedLifetime(clients) {}
    }

    @Test func `readers of events that were there for half a minute make room for new ones`() async {
        let feed = EventFeed()
        let begin = ContinuousClock.now
        var streams = (0..<EventFeed.maxReaders).compactMap { _ in feed.subscribe(now: begin) }
        #expect(streams.count == EventFeed.maxReaders)
        #expect(feed.subscribe(now: begin + .seconds(29)) == nil)
        let new = feed.subscribe(now: begin + .seconds(30))
        #expect(new != nil)
        var frames = 0
        for await _ in streams.removeFirst() { frames += 1 }
        #expect(frames == 1)
        withExtendedLifetime((streams, new)) {}
    }

    @Test func `no more than 32 readers of events are served`() async throws {
        let admin = try await AdministeredProxy()
        var readers: [RawClient] = []
        // Those who are gone, or never wanted the body, take no place.
        for _ in 0..<40 { #expect(try await admin.send("HEAD", "/events").status == 200) }
        for _ in 0..<32 {
            let reader = try await RawClient.connect(port: admin.adminPort)
            try await reader.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = try await reader.read(until: "retry: 3000")
            readers.append(reader)
        }
        #expect(try await admin.get("/events").status == 503)
        #expect(try await admin.get("/livez").status == 200)
    }
}
