import HTTPServer
import Reactor
import Synchronization
import TestSupport
import Testing
import WireText

@Suite("A server of async handlers", .timeLimit(.minutes(1)))
struct AsyncExchangeTests {
    @Test("requests on one connection are answered in order, pipelined ones too")
    func keepAlive() async throws {
        try await withServer(respond: echo) { port in
            let client = try await RawClient.connect(port: port)
            try await client.send(
                "GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
                    + "PUT http://h/c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")
            let first = try await client.response()
            #expect(first.text == "GET /a x=1 0")
            let date = try #require(first.field("date").flatMap { HTTPDate.seconds(Array($0.utf8)) })
            #expect(abs(date - Int64(WallTime.now.seconds)) < 30)
            #expect(try await client.response().text == "POST /b - 3")
            #expect(try await client.response().text == "PUT /c - 2")
            try await client.send("HEAD /d HTTP/1.1\r\nHost: h\r\n\r\n")
            let head = try await client.response(to: "HEAD")
            #expect(head.status == 200)
            #expect(head.field("content-length") == "11")
        }
    }

    @Test("a request of HTTP/1.0 is answered, and its connection closed")
    func oldVersion() async throws {
        try await withServer(respond: echo) { port in
            let client = try await RawClient.connect(port: port)
            try await client.send("GET / HTTP/1.0\r\n\r\n")
            let text = String(decoding: try await client.readToEnd(), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(text.contains("\r\nConnection: close\r\n"))
            #expect(text.hasSuffix("GET / - 0"))
        }
    }

    static let refused: [(request: String, status: Int)] = [
        ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "a", count: 70_000))\r\n\r\n", 431),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 70000\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc", 400),
        ("\u{16}\u{3}\u{1} hello", 400),
    ]

    @Test(
        "a malformed request is refused, nothing behind it is read, and the handler never sees it", arguments: refused)
    func refusal(_ request: String, _ status: Int) async throws {
        let calls = Atomic(0)
        try await withServer { request in
            calls.add(1, ordering: .relaxed)
            return await echo(request)
        } _: { port in
            let client = try await RawClient.connect(port: port)
            try await client.send(request + "GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
            let text = String(decoding: try await client.readToEnd(), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 \(status) "))
            #expect(text.contains("\r\nConnection: close\r\n"))
            #expect(!text.contains("/next"))
        }
        #expect(calls.load(ordering: .relaxed) == 0)
    }

    @Test("a chunked body that grows past the limit is refused with 413")
    func growingBody() async throws {
        try await withServer(maxBodyBytes: 10, respond: echo) { port in
            let client = try await RawClient.connect(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n")
            try await client.send("8\r\n12345678\r\n")
            #expect(try await client.response().status == 413)
        }
    }

    @Test("where bodies are only counted, one of any size is read and nothing of it kept")
    func countedBody() async throws {
        try await withServer(maxBodyBytes: nil) { request in
            .plain(200, "\(request.bodyLength) \(request.body.count)")
        } _: { port in
            let client = try await RawClient.connect(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n")
            try await client.send(String(repeating: "a", count: 3_000_000))
            #expect(try await client.response().text == "3000000 0")
            try await client.send(
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
            #expect(try await client.response().text == "3 0")
        }
    }

    @Test("a body is read behind 100 Continue where the client expects it")
    func expectation() async throws {
        try await withServer(respond: echo) { port in
            let client = try await RawClient.connect(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
            #expect(try await client.read(until: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
            try await client.send("abc")
            #expect(try await client.response().text == "POST / - 3")
        }
    }

    @Test("a client that ends its side gets the answers to all whole requests, and an end")
    func halfClose() async throws {
        let gate = Signal()
        try await withServer { request in
            await gate.wait()
            return await echo(request)
        } _: { port in
            let client = try await RawClient.connect(port: port)
            try await client.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3 HTT")
            client.finishSending()
            try await client.isDelivered()
            gate.give()
            #expect(try await client.response().text == "GET /1 - 0")
            #expect(try await client.response().text == "GET /2 - 0")
            #expect(try await client.readToEnd().isEmpty)
        }
    }

    @Test("a head that comes too slowly is 408, a body that stalls too, an idle connection is closed without a word")
    func deadlines() async throws {
        var settings = ServerSettings()
        settings.headerTimeout = Timeout(.milliseconds(300))
        settings.idleTimeout = Timeout(.seconds(2))
        try await withServer(settings: settings, respond: echo) { port in
            let slow = try await RawClient.connect(port: port)
            try await slow.send("GET / HTTP")
            #expect(try await slow.response().status == 408)
            let stalled = try await RawClient.connect(port: port)
            try await stalled.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na")
            #expect(try await stalled.response().status == 408)
            let idle = try await RawClient.connect(port: port)
            #expect(try await idle.readToEnd().isEmpty)
        }
    }

    @Test("a stream's pieces are sent as they come; one that nobody reads is asked for no more than has room")
    func backpressure() async throws {
        let made = Atomic(0)
        try await withServer { _ in
            ServerResponse(
                status: 200,
                body: .pieces(
                    AsyncStream {
                        made.add(1, ordering: .relaxed)
                        return made.load(ordering: .relaxed) > 2000
                            ? nil : [UInt8](repeating: 0x61, count: 16 * 1024)
                    }))
        } _: { port in
            let client = try await RawClient.connect(port: port, receiveBuffer: 16 * 1024)
            try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try await client.read(until: "\r\n\r\n")
            #expect(try await settled("no more is made") { made.load(ordering: .relaxed) } < 500)
            client.resetOnClose()
            client.close()
        }
    }

    @Test("a streamed answer is chunked, and whole")
    func stream() async throws {
        try await withServer { _ in
            let (pieces, continuation) = AsyncStream<[UInt8]>.makeStream()
            for word in ["one ", "", "two ", "three"] { continuation.yield(Array(word.utf8)) }
            continuation.finish()
            return ServerResponse(status: 200, body: .pieces(pieces))
        } _: { port in
            let client = try await RawClient.connect(port: port)
            for _ in 0..<2 {
                try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await client.response().text == "one two three")
            }
        }
    }

    @Test("a client that is reset cancels its handler")
    func leaving() async throws {
        let cancelled = Signal()
        let began = Signal()
        try await withServer { _ in
            began.give()
            await untilCancelled()
            cancelled.give()
            return .plain(200, "")
        } _: { port in
            do {
                let client = try await RawClient.connect(port: port)
                try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                await began.wait()
                client.resetOnClose()
            }
            await cancelled.wait()
        }
    }

    @Test("when all places are taken, connections without a request make room")
    func room() async throws {
        var settings = ServerSettings()
        settings.maxConnections = 4
        settings.shortIdle = .milliseconds(1)
        try await withServer(settings: settings, respond: echo) { port in
            var idle: [RawClient] = []
            for _ in 0..<4 { idle.append(try await RawClient.connect(port: port)) }
            let client = try await RawClient.connect(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await client.response().status == 200)
        }
    }

    @Test("a field value with a line end in it is left out")
    func splitting() async throws {
        try await withServer { _ in
            ServerResponse(status: 200, fields: [("X-Good", "1"), ("X-Bad", "a\r\nX-Worse: 1")])
        } _: { port in
            let client = try await RawClient.connect(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let response = try await client.response()
            #expect(response.field("x-good") == "1")
            #expect(response.field("x-bad") == nil)
            #expect(response.field("x-worse") == nil)
        }
    }
}
