import Proxy
import Reports
import TestSupport
import Testing

@Suite("one side of an upgraded connection may end before the other", .grounds, .timeLimit(.minutes(1)))
struct UpgradeEndTests {
    private func expectOver(_ ground: Ground, within limit: Duration = .seconds(2)) async throws {
        let deadline = ContinuousClock.now + limit
        while await ground.server.traffic().inFlight > 0 {
            guard ContinuousClock.now < deadline else { throw TestFailure("not over within \(limit)") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test func `the client's end is passed on, and the other direction goes on`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        try await client.send("question")
        client.finishSending()
        #expect(try await end.readToEnd(within: .seconds(1)) == Array("question".utf8))
        try await Task.sleep(for: .milliseconds(700))
        try await end.send("answer")
        end.close()
        #expect(try await client.readToEnd() == Array("answer".utf8))
    }

    @Test func `the upstream's end is passed on, and the client's direction goes on`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        try await end.send("answer")
        end.finishSending()
        #expect(try await client.readToEnd(within: .seconds(1)) == Array("answer".utf8))
        try await Task.sleep(for: .milliseconds(700))
        let up = pattern(4 << 20, step: 31)
        async let sent: Void = client.send(up)
        #expect(try await end.read(count: up.count) == up)
        try await sent
        #expect(await ground.server.traffic().inFlight == 1)
        client.finishSending()
        #expect(try await end.readToEnd(within: .seconds(1)).isEmpty)
        try await expectOver(ground)
    }

    @Test func `the upstream's end comes behind all that it has sent`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        let down = pattern(8 << 20, step: 57)
        async let sent: Void = end.send(down)
        try await Task.sleep(for: .milliseconds(200))
        async let received = client.readToEnd(within: .seconds(30))
        try await sent
        end.finishSending()
        #expect(try await received == down)
        try await client.send("thanks")
        client.finishSending()
        #expect(try await end.readToEnd(within: .seconds(1)) == Array("thanks".utf8))
    }

    @Test func `what the client has sent with its end arrives, too`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        end.finishSending()
        #expect(try await client.readToEnd(within: .seconds(1)).isEmpty)
        let up = pattern(6 << 20, step: 13)
        async let sent: Void = client.send(up)
        try await Task.sleep(for: .milliseconds(200))
        async let received = end.readToEnd(within: .seconds(30))
        try await sent
        client.finishSending()
        #expect(try await received == up)
    }

    @Test func `an upstream that is gone altogether ends it with the client's next words`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far)
        let (client, end) = try await ground.openUpgrade(far)
        end.close()
        #expect(try await client.readToEnd(within: .seconds(1)).isEmpty)
        #expect(await ground.server.traffic().inFlight == 1)
        try await client.send("is anybody there?")
        try await expectOver(ground)
    }

    @Test func `a client that says nothing more is given up after proxy.idle_timeout`() async throws {
        let far = try RawListener()
        let ground = try await Ground.upgrading(far, upstream: "idle_timeout: off", proxy: "idle_timeout: 5s")
        let (client, end) = try await ground.openUpgrade(far)
        end.finishSending()
        #expect(try await client.readToEnd(within: .seconds(1)).isEmpty)
        try await Task.sleep(for: .seconds(3))
        #expect(await ground.server.traffic().inFlight == 1)
        try await expectOver(ground, within: .seconds(10))
        #expect(try await end.readToEnd(within: .seconds(1)).isEmpty)
    }

    /// Agrees, says a word and, if `first`, that it says no more; shows what comes; else answers it with another word.
    private static let server = #"""
        import socket, ssl, sys, time
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        raw, _ = listener.accept()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        def attempt(call):
            while True:
                try:
                    return call()
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    data = raw.recv(65536)
                    incoming.write(data) if data else incoming.write_eof()
                finally:
                    raw.sendall(outgoing.read())
        attempt(tls.do_handshake)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += attempt(lambda: tls.read(4096))
        attempt(lambda: tls.write(b"HTTP/1.1 101 Fine\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nword"))
        first = sys.argv[3] == "first"
        if first:
            try:
                tls.unwrap()
            except ssl.SSLWantReadError:
                raw.sendall(outgoing.read())
        try:
            while data := attempt(lambda: tls.read(4096)):
                print(data.decode(), flush=True)
        # Python says so where our own end has been said before.
        except ssl.SSLZeroReturnError:
            pass
        except ssl.SSLError as error:
            print(type(error).__name__, flush=True)
        print("end", flush=True)
        if not first:
            time.sleep(1)
            attempt(lambda: tls.write(b"afterword"))
            raw.close()
        """#

    @Test(arguments: [true, false])
    func `over TLS an end is a close_notify`(isUpstreamFirst: Bool) async throws {
        let authority = try await PrivateCA()
        let certificate = try await authority.server()
        let server = try ChildProcess([
            "/usr/bin/python3", "-c", Self.server, certificate.certificateFile, certificate.keyFile,
            isUpstreamFirst ? "first" : "last",
        ])
        let port = try await eventually("the server says its port") {
            server.output.hasSuffix("\n") ? UInt16(server.output.dropLast()) : nil
        }
        let ground = try await Ground(
            more: """
                - host: ws.test
                  url: https://localhost:\(port)
                  client: api
                  tls: {ca_file: \(authority.certificateFile)}
                """)
        let client = try await ground.connect()
        try await client.send(handshake())
        #expect(try await client.response().status == 101)
        if isUpstreamFirst {
            #expect(try await client.readToEnd(within: .seconds(1)) == Array("word".utf8))
            try await Task.sleep(for: .milliseconds(700))
        } else {
            #expect(try await client.read(count: 4) == Array("word".utf8))
        }
        try await client.send("afterword")
        try await eventually("it comes") { server.output.contains("afterword\n") }
        client.finishSending()
        try await eventually("its end comes") { server.output.hasSuffix("end\n") }
        #expect(!server.output.contains("Error"))
        if !isUpstreamFirst { #expect(try await client.readToEnd() == Array("afterword".utf8)) }
        try await expectOver(ground)
        try await server.stop()
    }
}
