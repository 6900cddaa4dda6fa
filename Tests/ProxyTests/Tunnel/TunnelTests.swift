import Configuration
import Proxy
import TestSupport
import Testing

@Suite("CONNECT opens a tunnel, where it is allowed to", .stopsProxies, .timeLimit(.minutes(1)))
struct TunnelTests {
    @Test func `bytes that come together with the CONNECT go through behind the 200`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(far.port)")
        let client = try await proxy.connect(sending: connectRequest("127.0.0.1:\(far.port)") + "early bytes")
        let end = try await far.accept()
        #expect(try await end.read(count: 11) == Array("early bytes".utf8))
        #expect(try await client.response(to: "CONNECT").status == 200)
    }

    @Test func `bytes that come with the CONNECT, and the end behind them, go through`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(far.port)")
        let client = try await proxy.connect(sending: connectRequest("127.0.0.1:\(far.port)") + "all of it")
        client.finishSending()
        let end = try await far.accept()
        #expect(try await end.readToEnd() == Array("all of it".utf8))
        try await end.send("answer")
        end.close()
        #expect(try await client.response(to: "CONNECT").status == 200)
        #expect(try await client.readToEnd() == Array("answer".utf8))
    }

    @Test func `nothing of the CONNECT itself reaches the other end, no token either`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(far.port), api.test:443")
        let client = try await proxy.connect(
            sending: connectRequest("127.0.0.1:\(far.port)", fields: "Authorization: Bearer mine\r\nX-Mine: 1\r\n")
                + "x")
        let end = try await far.accept()
        client.finishSending()
        #expect(try await end.readToEnd() == Array("x".utf8))
        #expect(proxy.endpoint.requests.isEmpty)
    }

    @Test func `tunnels count as connections`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(far.port)", proxy: "max_connections: 2")
        let (first, end) = try await proxy.openTunnel(to: far)
        let (second, other) = try await proxy.openTunnel(to: far)
        let third = try await proxy.connect(sending: message())
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
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(far.port)", proxy: "users: {alice: sesame}")
        #expect(try await proxy.send(connectRequest("127.0.0.1:\(far.port)"), method: "CONNECT").status == 407)
        #expect(try await !far.isAwaited())
        let client = try await proxy.connect(
            sending: connectRequest("127.0.0.1:\(far.port)", fields: "Proxy-Authorization: Basic YWxpY2U6c2VzYW1l\r\n")
                + "x")
        let end = try await far.accept()
        #expect(try await client.response(to: "CONNECT").status == 200)
        client.finishSending()
        #expect(try await end.readToEnd() == Array("x".utf8))
    }

    @Test func `a client on a Unix socket has tunnels too`() async throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "h.sock")
        let far = try RawListener()
        let proxy = try await ProxyInProcess(
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
        #expect(proxy.endpoint.requests.isEmpty)
    }

    @Test func `ordinary requests beside a tunnel are served as ever`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(far.port)")
        let (client, end) = try await proxy.openTunnel(to: far)
        let kept = try await proxy.connect()
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
