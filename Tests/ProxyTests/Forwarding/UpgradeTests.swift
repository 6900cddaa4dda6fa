import Proxy
import Reports
import TestSupport
import Testing

@Suite("upgraded connections: what tunnels don't have", .stopsProxies, .timeLimit(.minutes(1)))
struct UpgradeTests {
    @Test func `an upgrade whose upstream does not answer is a 504`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading(upstream: "response_timeout: 200ms")
        let client = try await proxy.connect(sending: handshake())
        let end = try await far.accept()
        try expectProblem(try await client.response(), "response-timeout", upstream: "ws.test")
        _ = try await end.readToEnd()
    }

    @Test func `an upgraded client that says nothing more is given up after proxy.idle_timeout`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading(upstream: "idle_timeout: off", proxy: "idle_timeout: 1s")
        let begin = ContinuousClock.now
        let (client, end) = try await proxy.openUpgrade(far)
        end.finishSending()
        #expect(try await client.readToEnd().isEmpty)
        try await proxy.isOver()
        #expect(ContinuousClock.now - begin >= .seconds(1))
        #expect(try await end.readToEnd(within: .seconds(5)).isEmpty)
    }

    @Test func `an upgrade goes by CONNECT through a next proxy`() async throws {
        let next = try RawListener()
        let proxy = try await ProxyInProcess(
            more: "- {host: far.test, url: 'http://far.example', proxy: 'http://127.0.0.1:\(next.port)', client: api, "
                + "allow_plaintext: true}")
        let client = try await proxy.connect(sending: handshake("http://far.test/chat"))
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

    @Test func `ordinary requests before and behind an upgrade go on as ever`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            guard exchange.head.field("Upgrade") != nil else { return try exchange.respond(body: "ok") }
            try exchange.send(agreement + "\r\nraw")
            exchange.close()
        }
        for _ in 0..<3 {
            #expect(try await proxy.request().text == "ok")
            let client = try await proxy.connect(sending: handshake("http://api.test/"))
            #expect(try await client.response().status == 101)
            #expect(try await client.readToEnd() == Array("raw".utf8))
            #expect(try await proxy.request("POST", body: "hello").text == "ok")
        }
        #expect(proxy.origin.problems.isEmpty)
    }

    // MARK: TLS

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
            # Longer than the 500 ms after which the proxy ends a side that can't be passed on.
            time.sleep(0.7)
            attempt(lambda: tls.write(b"afterword"))
            raw.close()
        """#

    @Test(arguments: [true, false])
    func `an end of an upgraded connection over TLS is a close_notify`(isUpstreamFirst: Bool) async throws {
        let server = try await TLSServerProcess(
            ["/usr/bin/python3", "-c", Self.server], [isUpstreamFirst ? "first" : "last"])
        let proxy = try await ProxyInProcess(
            more: secureUpstream("ws.test", server.port, server.authority))
        let client = try await proxy.connect(sending: handshake())
        #expect(try await client.response().status == 101)
        if isUpstreamFirst {
            #expect(try await client.readToEnd(within: .seconds(5)) == Array("word".utf8))
            // Time itself: the proxy ends a side that can't be passed on after 500 ms.
            try await holds("it stays", for: .milliseconds(700)) { await proxy.server.traffic().inFlight == 1 }
        } else {
            #expect(try await client.read(count: 4) == Array("word".utf8))
        }
        try await client.send("afterword")
        try await eventually("it comes") { server.output.contains("afterword\n") }
        client.finishSending()
        try await eventually("its end comes") { server.output.hasSuffix("end\n") }
        #expect(!server.output.contains("Error"))
        if !isUpstreamFirst { #expect(try await client.readToEnd() == Array("afterword".utf8)) }
        try await proxy.isOver()
        try await server.process.stop()
    }
}
