import HTTPServer
import Reactor
import TestSupport
import Testing

@Suite("A server whose slots are taken, or whose clients are slow", .timeLimit(.minutes(1)))
struct CrowdTests {
    private static let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    private func settings(slots: Int) -> ServerSettings {
        var settings = ServerSettings()
        settings.maxConnections = slots
        settings.whenFull = .replace
        settings.idleTimeout = Timeout(.seconds(20))
        settings.headerTimeout = Timeout(.seconds(30))
        settings.requestTimeout = Timeout(.seconds(40))
        return settings
    }

    @Test("a connection without a whole request gives its slot to a newcomer at once, the earliest deadline first")
    func replacing() async throws {
        try await withServer(settings: settings(slots: 4), respond: echo) { port in
            let silent = try await RawClient.connect(port: port)
            let half = try await RawClient.connect(port: port)
            try await half.send("GET / HTTP/1.1\r\nHo")
            try await half.isRead()
            let bodyless = try await RawClient.connect(port: port)
            try await bodyless.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
            try await bodyless.isRead()
            let answered = try await RawClient.connect(port: port)
            try await answered.send(Self.request)
            #expect(try await answered.response().status == 200)
            // Time itself: a connection without a request may be replaced after 50 ms.
            try await Task.sleep(for: .milliseconds(60))
            var newcomers: [RawClient] = []
            for old in [silent, answered, half, bodyless] {
                let begin = ContinuousClock.now
                let client = try await RawClient.connect(port: port)
                newcomers.append(client)
                try await client.send(Self.request)
                #expect(try await client.response().status == 200)
                // No timeout is as short.
                #expect(begin.duration(to: .now) < .seconds(5))
                #expect(try await old.readToEnd().isEmpty)
            }
            withExtendedLifetime(newcomers) {}
        }
    }

    @Test("a request that has arrived is answered, even when after a long turn a newcomer is accepted first")
    func arrived() async throws {
        let loop = try EventLoop.start(name: "held")
        try await withServer(settings: settings(slots: 1), on: loop, respond: echo) { port in
            let old = try await RawClient.connect(port: port)
            // From then on it may be replaced.
            try await Task.sleep(for: .milliseconds(100))
            let (held, gate) = (Signal(), Gate())
            loop.execute {
                held.give()
                gate.wait()
            }
            // A turn handles events before jobs. Until the job runs, the loop could still accept the newcomer, and then
            // the old client would have sent nothing.
            await held.wait()
            let newcomer = try await RawClient.connect(port: port, sending: Self.request)
            try await old.send(Self.request)
            try await old.hasArrived(Self.request.utf8.count)
            gate.open()
            #expect(try await old.response().status == 200)
            #expect(try await newcomer.response().status == 200)
        }
    }

    @Test("while all are being answered newcomers wait; one that takes no answer makes room")
    func allBusy() async throws {
        let gate = Signal()
        let begun = Recorder<String>()
        try await withServer(settings: settings(slots: 2)) { request in
            begun.append(request.path)
            if request.path == "/large" {
                return ServerResponse(status: 200, body: .whole([UInt8](repeating: 0x61, count: 16 << 20)))
            }
            if request.path == "/wait" { await gate.wait() }
            return await echo(request)
        } _: { port in
            let waiting = try await RawClient.connect(port: port)
            try await waiting.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
            let other = try await RawClient.connect(port: port)
            try await other.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
            try await eventually("both are being answered") { begun.all.count == 2 }
            let third = try await RawClient.connect(port: port)
            try await third.send(Self.request)
            // Time itself: twice the 50 ms after which a slot could be given away.
            await #expect(throws: (any Error).self) { try await third.response(within: .milliseconds(100)) }
            gate.give()
            #expect(try await third.response().status == 200)
            for client in [waiting, other] { #expect(try await client.response().status == 200) }
            third.close()
            // Newcomers, for either of the two may have made room for the third.
            var readers: [RawClient] = []
            for _ in 0..<2 {
                let reader = try await RawClient.connect(port: port)
                try await reader.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
                readers.append(reader)
            }
            try await eventually("both have an answer to take") { begun.all.count { $0 == "/large" } == 2 }
            #expect(try await RawClient.exchange(port: port, Self.request).status == 200)
            withExtendedLifetime(readers) {}
        }
    }

    @Test("a request that was sent before the last answer waits for its turn, one that was not does not")
    func pause() async throws {
        var settings = ServerSettings()
        settings.pipelinePause = Timeout(.milliseconds(100))
        try await withServer(settings: settings, respond: echo) { port in
            let client = try await RawClient.connect(port: port)
            var begin = ContinuousClock.now
            try await client.send(String(repeating: Self.request, count: 3))
            for _ in 0..<3 { #expect(try await client.response().status == 200) }
            #expect(begin.duration(to: .now) >= .milliseconds(200))
            let fastest = try await shortest(under: .milliseconds(300)) {
                begin = .now
                for _ in 0..<5 {
                    try await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
                    #expect(try await client.response().text == "POST / - 2")
                }
                return begin.duration(to: .now)
            }
            #expect(fastest < .milliseconds(300))
        }
    }

    @Test("a whole request has its time, however its bytes drip; an answer that is not taken has its own")
    func times() async throws {
        var settings = ServerSettings()
        settings.headerTimeout = Timeout(.milliseconds(400))
        settings.requestTimeout = Timeout(.milliseconds(400))
        settings.stallTimeout = Timeout(.milliseconds(200))
        try await withServer(settings: settings) { request in
            ServerResponse(status: 200, body: .whole([UInt8](repeating: 0x61, count: 64 << 20)))
        } _: { port in
            let begin = ContinuousClock.now
            let drip = try await RawClient.connect(port: port)
            try await drip.send("POST / HTTP/1.1\r\nHo")
            // Time itself: what is left for the body is less than a whole timeout.
            try await Task.sleep(for: .milliseconds(250))
            try await drip.send("st: h\r\nContent-Length: 1000\r\n\r\n")
            let sending = Task {
                while !Task.isCancelled {
                    try await drip.send("x")
                    // Time itself: bytes keep coming.
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            #expect(try await drip.response().status == 408)
            // Were each byte to begin it anew, it never came.
            #expect(begin.duration(to: .now) < .seconds(5))
            sending.cancel()

            let stalled = try await RawClient.connect(port: port, receiveBuffer: 4096)
            try await stalled.send(Self.request)
            try await stalled.isLeft()
            // Cut, not ended as if it were whole.
            await #expect(throws: (any Error).self) { try await stalled.countToEnd(within: .seconds(5)) }
        }
    }

    @Test("a field that is too long is answered with 431, a target with 414")
    func sizes() async throws {
        var settings = ServerSettings()
        settings.maxFieldBytes = 100
        let long = String(repeating: "x", count: 100)
        try await withServer(settings: settings, respond: echo) { port in
            for (request, status) in [
                ("GET /\(long) HTTP/1.1\r\nHost: h\r\n\r\n", 414),
                ("GET / HTTP/1.1\r\nHost: h\r\nX: \(long)\r\n\r\n", 431),
                ("GET / HTTP/1.1\r\nHost: h\r\nX: x\r\n\r\n", 200),
            ] {
                let answer = try await RawClient.exchange(port: port, request)
                #expect(answer.status == status)
            }
        }
    }

    @Test("a connection that is not admitted is closed unread")
    func admission() async throws {
        try await withServer(admits: { $0 != nil }, respond: echo) { port in
            let client = try await RawClient.connect(port: port)
            #expect(try await client.readToEnd(within: .seconds(2)).isEmpty)
        }
    }
}
