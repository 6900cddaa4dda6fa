import Configuration
import Proxy
import Reports
import Synchronization
import TestSupport
import Testing

@Suite("upgraded connections carry what both sides say", .grounds, .timeLimit(.minutes(1)))
struct UpgradeTests {
    // MARK: Bytes and ends

    @Test func `megabytes each way at once, whole and in order`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        let up = pattern(4 << 20, step: 31)
        let down = pattern(4 << 20, step: 57)
        async let sentUp: Void = client.send(up)
        async let sentDown: Void = end.send(down)
        async let receivedUp = end.read(count: up.count)
        async let receivedDown = client.read(count: down.count)
        #expect(try await receivedUp == up)
        #expect(try await receivedDown == down)
        _ = try await (sentUp, sentDown)
    }

    @Test(arguments: [true, false])
    func `whoever does not read stops the one who writes`(clientReads: Bool) async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        let writer = clientReads ? end : client
        let reader = clientReads ? client : end
        let sent = Mutex(0)
        let piece = [UInt8](repeating: 7, count: 1 << 20)
        await #expect(throws: (any Error).self) {
            for _ in 0..<256 {
                try await writer.send(piece, within: .milliseconds(800))
                sent.withLock { $0 += 1 }
            }
        }
        #expect(sent.withLock { $0 } < 64)
        try await reader.send("hello")
        #expect(try await writer.read(count: 5) == Array("hello".utf8))
        _ = try await reader.read(count: sent.withLock { $0 } << 20)
    }

    @Test func `the upstream's end ends it, with everything before it`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        try await client.send("x")
        _ = try await end.read(count: 1)
        try await end.send([UInt8](repeating: 3, count: 1 << 20))
        end.close()
        #expect(try await client.readToEnd(within: .seconds(2)).count == 1 << 20)
    }

    /// Some of what was sent waits for room when the client ends: for which totals, the kernel's buffers say.
    @Test func `the client's end comes behind all that it has sent`() async throws {
        for count in stride(from: 3_900_000, to: 4_150_000, by: 12_000) {
            let far = try RawListener()
            let ground = try await Ground.upgrading(far)
            let (client, end) = try await ground.openUpgrade(far)
            async let sent: Void = client.send([UInt8](repeating: 9, count: count), within: .seconds(30))
            try await Task.sleep(for: .milliseconds(200))
            async let received = end.readToEnd(within: .seconds(30)).count
            try await sent
            client.finishSending()
            #expect(try await received == count)
        }
    }

    @Test(arguments: [true, false])
    func `a reset of one side ends the other within a second`(clientResets: Bool) async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        var (client, end): (RawClient?, RawClient?) = try await ground.openUpgrade(far)
        try await client?.send("x")
        _ = try await end?.read(count: 1)
        if clientResets {
            client?.resetOnClose()
            client = nil
            #expect(try await end?.readToEnd(within: .seconds(1)) == [])
        } else {
            end?.resetOnClose()
            end = nil
            #expect(try await client?.readToEnd(within: .seconds(1)) == [])
        }
    }

    @Test func `one in which nothing moves ends after the upstream's idle_timeout`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far, upstream: "idle_timeout: 5s")
        let (client, end) = try await ground.openUpgrade(far)
        for _ in 0..<26 {
            try await Task.sleep(for: .milliseconds(250))
            try await client.send("x")
            _ = try await end.read(count: 1)
        }
        #expect(try await client.readToEnd(within: .seconds(15)).isEmpty)
        #expect(try await end.readToEnd(within: .seconds(15)).isEmpty)
    }

    @Test func `an upstream that does not answer is 504`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far, upstream: "response_timeout: 200ms")
        let client = try await ground.connect()
        try await client.send(handshake())
        let end = try await far.accept()
        try expectProblem(try await client.response(), 504, "http_response_timeout", upstream: "ws.test")
        _ = try await end.readToEnd()
    }

    @Test func `draining leaves it its time, and then ends it`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        async let drained: Void = ground.server.drain(within: .milliseconds(700))
        try await Task.sleep(for: .milliseconds(100))
        try await client.send("still")
        #expect(try await end.read(count: 5) == Array("still".utf8))
        #expect(try await client.readToEnd(within: .seconds(5)).isEmpty)
        #expect(try await end.readToEnd(within: .seconds(5)).isEmpty)
        await drained
    }

    // MARK: By other ways

    @Test func `through a next proxy it goes by CONNECT`() async throws {
        let next = try RawListener()
        let ground = try await Ground(
            more: """
                - host: far.test
                  url: http://far.example
                  proxy: http://127.0.0.1:\(next.port)
                  client: api
                  allow_plaintext: true
                """)
        let client = try await ground.connect()
        try await client.send(handshake("http://far.test/chat"))
        let end = try await next.accept()
        let connect = try await end.read(until: "\r\n\r\n")
        #expect(connect.hasPrefix("CONNECT far.example:80 HTTP/1.1\r\n"))
        #expect(!connect.contains("T1"))
        try await end.send("HTTP/1.1 200 OK\r\n\r\n")
        let head = try await end.read(until: "\r\n\r\n")
        #expect(head.hasPrefix("GET /chat HTTP/1.1\r\n"))
        #expect(head.contains("Authorization: Bearer T1\r\n"))
        try await end.send(agreement + "\r\n")
        #expect(try await client.response().status == 101)
        try await client.send("ping")
        #expect(try await end.read(count: 4) == Array("ping".utf8))
    }

    @Test func `ordinary requests go on as ever, before and behind`() async throws {
        let ground = try await Ground { exchange in
            guard exchange.head.field("Upgrade") != nil else { return try exchange.respond(body: "ok") }
            try exchange.send(agreement + "\r\nraw")
            exchange.close()
        }
        for _ in 0..<3 {
            #expect(try await ground.request().text == "ok")
            let client = try await ground.connect()
            try await client.send(handshake("http://api.test/"))
            #expect(try await client.response().status == 101)
            #expect(try await client.readToEnd() == Array("raw".utf8))
            #expect(try await ground.request("POST", body: "hello").text == "ok")
        }
        #expect(ground.origin.problems.isEmpty)
    }

    @Test func `the access log and the metrics count its bytes, the metrics as they go`() async throws {
        let log = RecordLog()
        var observer = ProxyObserver()
        observer.accessLog = { log.append($0) }
        let far = try RawListener()
        let ground = try await Ground.upgrading(far, observer: observer)
        let (client, end) = try await ground.openUpgrade(far)
        try await client.send(Array(repeating: 1, count: 1000))
        _ = try await end.read(count: 1000)
        try await end.send(Array(repeating: 1, count: 3000))
        _ = try await client.read(count: 3000)
        var traffic = try #require(await ground.server.traffic().upstreams.first { $0.name == "ws.test" })
        #expect((traffic.bytesSent, traffic.bytesReceived) == (1000, 3000))
        #expect(await ground.server.traffic().inFlight == 1)
        end.close()
        _ = try await client.readToEnd()
        client.close()
        try await eventually("its record") { log.records.count == 1 }
        let record = log.records[0]
        #expect((record.status, record.bytesReceived, record.bytesSent) == (101, 1000, 3000))
        #expect((record.upstream, record.client) == ("ws.test", "api"))
        traffic = try #require(await ground.server.traffic().upstreams.first { $0.name == "ws.test" })
        #expect((traffic.bytesSent, traffic.bytesReceived) == (1000, 3000))
        #expect(traffic.requests[101] == 1)
    }
}
