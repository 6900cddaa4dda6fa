import Proxy
import TestSupport
import Testing

@Suite("CONNECT leads where it may, and says so where it can't", .stopsProxies, .timeLimit(.minutes(1)))
struct TunnelReachTests {
    // MARK: Where to

    @Test func `a tunnel reaches only listed hosts`() async throws {
        let listed = try RawListener()
        let other = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(listed.port)")
        for authority in ["127.0.0.1:\(other.port)", "localhost:\(listed.port)", "api.test:443"] {
            let client = try await proxy.connect(sending: connectRequest(authority) + message())
            try expectProblem(try await client.response(to: "CONNECT"), "tunnel-not-listed", upstream: nil)
            // The bytes behind it are no request.
            #expect(try await client.readToEnd().isEmpty)
        }
        #expect(proxy.origin.connections.isEmpty)
        #expect(try await !other.isAwaited())
    }

    @Test func `a listed name of a tunnel is read in any case`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling("LocalHost:\(far.port)")
        #expect(try await proxy.send(connectRequest("LOCALHOST.:\(far.port)"), method: "CONNECT").status == 200)
    }

    @Test(arguments: [
        "127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "127.1.2.3", "[::ffff:7f00:1]",
        "ip6-localhost", "localhost.", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]",
    ])
    func `no name and no form of an address leads a tunnel to a private address`(host: String) async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling(#""*""#)
        let response = try await proxy.send(connectRequest("\(host):\(far.port)"), method: "CONNECT")
        #expect([403, 502].contains(response.status))
        if response.status == 403 {
            try expectProblem(response, "address-denied", upstream: nil)
        }
        #expect(try await !far.isAwaited())
    }

    @Test(arguments: [
        "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "017700000001", "0", "127.0.0.1%25lo",
    ])
    func `another spelling of a private address opens no tunnel`(host: String) async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling(#""*""#)
        let response = try await proxy.send(connectRequest("\(host):\(far.port)"), method: "CONNECT")
        #expect([400, 403, 502].contains(response.status))
        #expect(try await !far.isAwaited())
    }

    @Test(arguments: [
        "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.100.100.200", "224.0.0.1", "[fe80::1]",
        "[fd00:ec2::254]", "[ff02::1]", "[::ffff:169.254.169.254]", "168.63.129.16",
    ])
    func `no tunnel reaches the neighbours or the cloud's metadata`(host: String) async throws {
        let proxy = try await ProxyInProcess.tunnelling(#""*""#)
        let response = try await proxy.send(connectRequest("\(host):80"), method: "CONNECT")
        try expectProblem(response, "address-denied", upstream: nil)
    }

    @Test func `private_networks and hosts listed beside the star are exceptions`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling(#""*""#, proxy: "private_networks: [127.0.0.0/8]")
        _ = try await proxy.openTunnel(to: far)
        let other = try await ProxyInProcess.tunnelling("\"*\", 127.0.0.1:\(far.port)")
        _ = try await other.openTunnel(to: far)
        #expect(try await other.send(connectRequest("127.0.0.2:\(far.port)"), method: "CONNECT").status == 403)
    }

    @Test(arguments: ["127.0.0.1", "0.0.0.0", "localhost"])
    func `a tunnel to the proxy's own listener is a loop`(host: String) async throws {
        let proxy = try await ProxyInProcess.tunnelling(
            #""*""#, proxy: "private_networks: [127.0.0.0/8, 0.0.0.0/8, \"::1/128\"]")
        let response = try await proxy.send(connectRequest("\(host):\(proxy.port)"), method: "CONNECT")
        try expectProblem(response, "loop", upstream: nil)
    }

    @Test func `an upstream's own listener opens no tunnels`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling(
            "127.0.0.1:\(far.port)", more: "- host: own.test\n  url: ORIGIN\n  listen: 127.0.0.1:0")
        let response = try await RawClient.exchange(
            port: proxy.upstreamPort, connectRequest("127.0.0.1:\(far.port)"), method: "CONNECT")
        try expectProblem(response, "connect-refused", upstream: nil)
    }

    // MARK: When it can't

    @Test func `a tunnel to a port where nobody listens is 502, with no 200 before`() async throws {
        let port = try freePort()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(port)")
        let client = try await proxy.connect(sending: connectRequest("127.0.0.1:\(port)") + "early")
        let response = try await client.response(to: "CONNECT")
        try expectProblem(response, "connection-refused", upstream: nil)
        #expect(!response.text.contains("upstream"))
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test func `a tunnel to a name that does not exist is 502`() async throws {
        let proxy = try await ProxyInProcess.tunnelling("no-such-host.invalid:443")
        let response = try await proxy.send(connectRequest("no-such-host.invalid:443"), method: "CONNECT")
        try expectProblem(response, "dns", upstream: nil)
    }

    @Test func `a tunnel to an address that does not answer is 504`() async throws {
        let deaf = try DeafPort()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(deaf.port)")
        let response = try await proxy.send(connectRequest("127.0.0.1:\(deaf.port)"), method: "CONNECT")
        try expectProblem(response, "connection-timeout", upstream: nil)
    }

    @Test func `a client that is reset while it waits ends the attempt`() async throws {
        let deaf = try DeafPort()
        let proxy = try await ProxyInProcess.tunnelling("127.0.0.1:\(deaf.port)", isLogged: true)
        var client: RawClient? = try await proxy.connect()
        try await client?.send(connectRequest("127.0.0.1:\(deaf.port)"))
        try await deaf.isDialled()
        client?.resetOnClose()
        client = nil
        try await eventually("its record", within: .seconds(2)) { proxy.log.all.map(\.status) == [499] }
    }

    @Test(arguments: [
        "CONNECT 127.0.0.1 HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT /path HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT http://127.0.0.1:80/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT u@127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT 127.0.0.1:0 HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT 127.0.0.1:99999 HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
        "CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "CONNECT * HTTP/1.1\r\nHost: x\r\n\r\n",
    ])
    func `a malformed CONNECT is refused, whether tunnels are allowed or not`(request: String) async throws {
        for proxy in [try await ProxyInProcess.tunnelling(#""*""#), try await ProxyInProcess()] {
            let client = try await proxy.connect(sending: request)
            try expectProblem(try await client.response(to: "CONNECT"), "malformed-request", upstream: nil)
            #expect(try await client.readToEnd().isEmpty)
        }
    }
}
