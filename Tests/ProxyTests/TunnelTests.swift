import Configuration
import Proxy
import Reports
import Synchronization
import TestSupport
import Testing

@Suite("CONNECT opens a tunnel, where it is allowed to", .grounds, .timeLimit(.minutes(1)))
struct TunnelTests {
    // MARK: Bytes

    @Test func `bytes pass as they are, both ways`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await ground.openTunnel(to: far)
        let bytes = (0...255).map { UInt8($0) }
        try await client.send(bytes)
        #expect(try await end.read(count: 256) == bytes)
        try await end.send(bytes.reversed())
        #expect(try await client.read(count: 256) == bytes.reversed())
        #expect(ground.endpoint.requests.isEmpty)
    }

    @Test func `what comes together with the CONNECT goes through behind the 200`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let client = try await ground.connect()
        try await client.send(connectRequest("127.0.0.1:\(far.port)") + "early bytes")
        let end = try await far.accept()
        #expect(try await end.read(count: 11) == Array("early bytes".utf8))
        #expect(try await client.response(to: "CONNECT").status == 200)
    }

    @Test func `what comes with it, and the end behind it, goes through`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let client = try await ground.connect()
        try await client.send(connectRequest("127.0.0.1:\(far.port)") + "all of it")
        client.finishSending()
        let end = try await far.accept()
        #expect(try await end.readToEnd() == Array("all of it".utf8))
        try await end.send("answer")
        end.close()
        #expect(try await client.response(to: "CONNECT").status == 200)
        #expect(try await client.readToEnd() == Array("answer".utf8))
    }

    @Test func `the request itself does not: nothing of it reaches the other end, no token either`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port), api.test:443")
        let client = try await ground.connect()
        try await client.send(
            connectRequest("127.0.0.1:\(far.port)", fields: "Authorization: Bearer mine\r\nX-Mine: 1\r\n") + "x")
        let end = try await far.accept()
        client.finishSending()
        #expect(try await end.readToEnd() == Array("x".utf8))
        #expect(ground.endpoint.requests.isEmpty)
    }

    @Test func `megabytes each way at once, whole and in order`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await ground.openTunnel(to: far)
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

    // MARK: Backpressure

    @Test(arguments: [true, false])
    func `whoever does not read stops the one who writes`(clientReads: Bool) async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await ground.openTunnel(to: far)
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
        // What the kernel's buffers hold, and no more.
        #expect(sent.withLock { $0 } < 64)
        // The other direction is free.
        try await reader.send("hello")
        #expect(try await writer.read(count: 5) == Array("hello".utf8))
        // And it goes on when it is read.
        _ = try await reader.read(count: sent.withLock { $0 } << 20)
    }

    // MARK: Ends

    @Test func `the client's end is passed on, and the other direction goes on`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await ground.openTunnel(to: far)
        try await client.send("question")
        client.finishSending()
        #expect(try await end.readToEnd() == Array("question".utf8))
        for piece in ["one ", "two ", "three"] {
            try await Task.sleep(for: .milliseconds(20))
            try await end.send(piece)
        }
        end.finishSending()
        #expect(try await client.readToEnd() == Array("one two three".utf8))
    }

    @Test func `the other end's end is passed on, and the client's direction goes on`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await ground.openTunnel(to: far)
        try await end.send("greeting")
        end.finishSending()
        #expect(try await client.readToEnd() == Array("greeting".utf8))
        try await client.send("late")
        client.finishSending()
        #expect(try await end.readToEnd() == Array("late".utf8))
    }

    @Test func `everything that was sent before an end arrives before it`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await ground.openTunnel(to: far, receiveBuffer: 4096)
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        async let sent: Void = end.send(piece, times: 8, within: .seconds(20))
        #expect(try await client.read(count: 8 << 20).count == 8 << 20)
        try await sent
        end.close()
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test(arguments: [true, false])
    func `a reset of one side ends the other within a second`(clientResets: Bool) async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        var (client, end): (RawClient?, RawClient?) = try await ground.openTunnel(to: far)
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

    @Test func `a client that is reset while the other end floods it lets that one go`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (first, end) = try await ground.openTunnel(to: far, receiveBuffer: 4096)
        var client: RawClient? = first
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        let flood = Task { try await end.send(piece, times: 1000, within: .seconds(20)) }
        _ = try await client?.read(count: 1 << 20)
        client?.resetOnClose()
        client = nil
        _ = consume first
        await #expect(throws: (any Error).self) { try await flood.value }
    }

    @Test func `a tunnel in which nothing moves ends after idle_timeout`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)", proxy: "idle_timeout: 5s")
        let (client, end) = try await ground.openTunnel(to: far)
        // As long as something moves, it stays.
        for _ in 0..<26 {
            try await Task.sleep(for: .milliseconds(250))
            try await client.send("x")
            _ = try await end.read(count: 1)
        }
        let start = ContinuousClock.now
        #expect(try await client.readToEnd(within: .seconds(15)).isEmpty)
        #expect(try await end.readToEnd(within: .seconds(5)).isEmpty)
        #expect(ContinuousClock.now - start >= .milliseconds(2000))
    }

    @Test func `draining leaves tunnels their time, and then ends them`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await ground.openTunnel(to: far)
        async let drained: Void = ground.server.drain(within: .milliseconds(700))
        try await Task.sleep(for: .milliseconds(100))
        try await client.send("still")
        #expect(try await end.read(count: 5) == Array("still".utf8))
        #expect(try await client.readToEnd(within: .seconds(5)).isEmpty)
        #expect(try await end.readToEnd(within: .seconds(5)).isEmpty)
        await drained
    }

    @Test func `tunnels count as connections`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)", proxy: "max_connections: 2")
        let (first, end) = try await ground.openTunnel(to: far)
        let (second, other) = try await ground.openTunnel(to: far)
        let third = try await ground.connect()
        try await third.send(message())
        await #expect(throws: TestFailure.self) { try await third.response(within: .milliseconds(300)) }
        first.close()
        _ = try await end.readToEnd()
        end.close()
        #expect(try await third.response().status == 200)
        second.close()
        other.close()
    }

    // MARK: Who

    @Test func `where users are set, a tunnel needs one`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)", proxy: "users: {alice: sesame}")
        let refused = try await ground.send(connectRequest("127.0.0.1:\(far.port)"), method: "CONNECT")
        #expect(refused.status == 407)
        #expect(try await !far.isAwaited())
        let client = try await ground.connect()
        try await client.send(
            connectRequest("127.0.0.1:\(far.port)", fields: "Proxy-Authorization: Basic YWxpY2U6c2VzYW1l\r\n") + "x")
        let end = try await far.accept()
        #expect(try await client.response(to: "CONNECT").status == 200)
        client.finishSending()
        #expect(try await end.readToEnd() == Array("x".utf8))
    }

    @Test func `a client on a Unix socket has tunnels too`() async throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "h.sock")
        let far = try RawListener()
        let ground = try await Ground(
            proxy: "connect: tunnel\ntunnels: [127.0.0.1:\(far.port)]",
            change: { $0.proxy.listen.append(.unix(path: path, mode: nil)) })
        let client = try await RawClient.connect(unix: path)
        try await client.send(connectRequest("127.0.0.1:\(far.port)") + "there")
        let end = try await far.accept()
        #expect(try await client.response(to: "CONNECT").status == 200)
        #expect(try await end.read(count: 5) == Array("there".utf8))
        try await end.send("and back")
        end.close()
        #expect(try await client.read(count: 8) == Array("and back".utf8))
        #expect(ground.endpoint.requests.isEmpty)
    }

    // MARK: Counting

    @Test func `the access log and the metrics count its bytes, the metrics as they go`() async throws {
        let log = RecordLog()
        var observer = ProxyObserver()
        observer.accessLog = { log.append($0) }
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)", observer: observer)
        let (client, end) = try await ground.openTunnel(to: far)
        try await client.send(Array(repeating: 1, count: 1000))
        _ = try await end.read(count: 1000)
        try await end.send(Array(repeating: 1, count: 3000))
        _ = try await client.read(count: 3000)
        var traffic = try #require(await ground.server.traffic().upstreams.first { $0.name == "(tunnels)" })
        #expect((traffic.bytesSent, traffic.bytesReceived) == (1000, 3000))
        #expect(await ground.server.traffic().inFlight == 1)
        #expect(log.records.isEmpty)
        try await client.send("x")
        _ = try await end.read(count: 1)
        client.close()
        end.close()
        try await eventually("its record") { log.records.count == 1 }
        let record = log.records[0]
        #expect(String(decoding: record.method, as: UTF8.self) == "CONNECT")
        #expect(String(decoding: record.host, as: UTF8.self) == "127.0.0.1:\(far.port)")
        #expect((record.status, record.bytesReceived, record.bytesSent) == (200, 1001, 3000))
        #expect((record.upstream, record.client) == (nil, nil))
        traffic = try #require(await ground.server.traffic().upstreams.first { $0.name == "(tunnels)" })
        #expect((traffic.bytesSent, traffic.bytesReceived) == (1001, 3000))
        #expect(traffic.requests[200] == 1)
        #expect(await ground.server.traffic().inFlight == 0)
    }

    @Test func `ordinary requests beside it are served as ever`() async throws {
        let far = try RawListener()
        let ground = try await Ground.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await ground.openTunnel(to: far)
        let kept = try await ground.connect()
        for _ in 0..<5 {
            try await kept.send(message())
            #expect(try await kept.response().text == "ok")
        }
        // A tunnel on a connection that carried requests before.
        try await kept.send(connectRequest("127.0.0.1:\(far.port)") + "more")
        let other = try await far.accept()
        #expect(try await kept.response(to: "CONNECT").status == 200)
        #expect(try await other.read(count: 4) == Array("more".utf8))
        client.close()
        end.close()
    }
}
