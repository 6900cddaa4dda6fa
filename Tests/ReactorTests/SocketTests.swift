import Glibc
import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("sockets listen, accept, read and write", .timeLimit(.minutes(1)))
struct SocketTests {
    private static func loopback(_ port: UInt16 = 0) -> SocketAddress {
        SocketAddress(.ipv4(address: 0x7f00_0001, port: port))
    }

    @Test func `a burst of connections is accepted whole, while other work goes on`() async throws {
        let server = try await EchoServer(Self.loopback())
        defer { server.stop() }
        let clients = try await withThrowingTaskGroup(of: RawClient.self) { group in
            for _ in 0..<400 { group.addTask { try await RawClient.connect(port: server.port) } }
            var clients: [RawClient] = []
            for try await client in group { clients.append(client) }
            return clients
        }
        try await eventually("all of them accepted") { server.accepted.all.count == 400 }
        for client in clients.prefix(20) {
            try await client.send("hello")
            #expect(try await client.read(count: 5) == Array("hello".utf8))
        }
    }

    @Test func `the kernel probes accepted peers that are silent`() async throws {
        let server = try await EchoServer(Self.loopback())
        defer { server.stop() }
        let client = try await RawClient.connect(port: server.port)
        let descriptor = try await eventually("accepted") { server.accepted.all.first }
        func option(_ level: Int32, _ option: Int32) -> Int32 {
            var value: Int32 = -1
            var length = socklen_t(MemoryLayout<Int32>.size)
            _ = unsafe getsockopt(descriptor, level, option, &value, &length)
            return value
        }
        #expect(option(SOL_SOCKET, SO_KEEPALIVE) == 1)
        #expect(option(Int32(IPPROTO_TCP), TCP_KEEPIDLE) == 15)
        // A program that reads slowly is not gone.
        #expect(option(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT) == 0)
        client.close()
    }

    @Test func `four megabytes that are echoed come back whole`() async throws {
        let server = try await EchoServer(Self.loopback())
        defer { server.stop() }
        let client = try await RawClient.connect(port: server.port)
        let bytes = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 / 3) }
        async let sent: Void = client.send(bytes, times: 4, within: .seconds(20))
        for _ in 0..<4 { #expect(try await client.read(count: bytes.count) == bytes) }
        try await sent
        client.finishSending()
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test func `without descriptors the failure is told, and accepting goes on when there are some again`() async throws
    {
        let scarcity = Scarcity()
        defer { scarcity.relief.open() }
        async let ended: Void = offPool { try scarcity.run() }
        let port = try await eventually("a port") { scarcity.ports.all.first }
        let client = try await RawClient.connect(port: port)
        try await eventually("the kernel refuses, more than once") { scarcity.failures.all.count >= 2 }
        #expect(scarcity.failures.all.allSatisfy { $0.code == EMFILE && $0.call == "accept4" })
        #expect(scarcity.accepted.all.isEmpty)
        // It waits between its tries.
        #expect(scarcity.failures.all.count < 100)
        scarcity.relief.open()
        try await eventually("the client is accepted") { scarcity.accepted.all.count == 1 }
        client.close()
        try await ended
    }

    @Test func `a paused listener leaves connections in the queue`() async throws {
        let server = try await EchoServer(Self.loopback())
        defer { server.stop() }
        await server.pause()
        let client = try await RawClient.connect(port: server.port)
        try await client.send("hello")
        for _ in 0..<20 { _ = try await server.loop.run { 0 } }
        #expect(server.accepted.all.isEmpty)
        await server.resume()
        #expect(try await client.read(count: 5) == Array("hello".utf8))
    }

    @Test func `a closed listener accepts nobody`() async throws {
        let server = try await EchoServer(Self.loopback())
        defer { server.stop() }
        await server.close()
        // Another test may have got the port by now.
        let client = try? await RawClient.connect(port: server.port)
        for _ in 0..<20 { _ = try await server.loop.run { 0 } }
        #expect(server.accepted.all.isEmpty)
        client?.finishSending()
    }

    @Test func `two loops share a port, and no port is bound twice otherwise`() async throws {
        let first = try ListeningSocket.open(Self.loopback(), sharesPort: true)
        let second = try ListeningSocket.open(first.address, sharesPort: true)
        #expect(first.address == second.address)
        #expect(first.address.port != 0)
        #expect(throws: SystemError.self) { try ListeningSocket.open(first.address, sharesPort: false) }
        first.close()
        second.close()
        let alone = try ListeningSocket.open(Self.loopback(), sharesPort: false)
        let failure = #expect(throws: SystemError.self) {
            try ListeningSocket.open(alone.address, sharesPort: false)
        }
        #expect(failure?.code == EADDRINUSE)
        #expect(failure?.description.hasPrefix("bind: ") == true)
        alone.close()
    }

    @Test func `a Unix socket carries bytes, and its path is bound once`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "socket")
        let server = try await EchoServer(SocketAddress(.unix(path: path)))
        defer { server.stop() }
        let client = try await RawClient.connect(unix: path)
        try await client.send("hello")
        #expect(try await client.read(count: 5) == Array("hello".utf8))
        #expect(throws: SystemError.self) {
            try ListeningSocket.open(
                SocketAddress(.unix(path: path + String(repeating: "x", count: 200))), sharesPort: false)
        }
    }

    @Test func `a reset is told from an end`() async throws {
        let server = try await EchoServer(Self.loopback(), cutting: true)
        defer { server.stop() }
        let client = try await RawClient.connect(port: server.port)
        try await client.send("x")
        await #expect(throws: (any Error).self) { try await client.read(count: 1) }
    }

    // MARK: Addresses

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1:80"), ("255.255.255.255", "255.255.255.255:80"), ("::1", "[::1]:80"),
        ("::", "[::]:80"),
        ("2001:DB8::0:1", "[2001:db8::1]:80"), ("::ffff:1.2.3.4", "[::ffff:1.2.3.4]:80"),
    ])
    func `a numeric address is printed as it is read`(text: String, printed: String) throws {
        let address = try #require(SocketAddress(numericHost: text, port: 80))
        #expect(address.description == printed)
        #expect(address.port == 80)
    }

    @Test(arguments: ["", "localhost", "127.1", "2130706433", "0x7f.0.0.1", "[::1]", "1.2.3.4.5", "::1%lo", "1.2.3.4 "])
    func `an address that is not numeric, or not in full, is refused`(text: String) {
        #expect(SocketAddress(numericHost: text, port: 80) == nil)
    }

    @Test func `names resolve, or say that they don't`() throws {
        #expect(try SocketAddress.resolve(host: "localhost", port: 80).contains { $0.description == "127.0.0.1:80" })
        let failure = #expect(throws: ResolutionError.self) {
            try SocketAddress.resolve(host: "does-not-exist.invalid", port: 80)
        }
        #expect(failure?.host == "does-not-exist.invalid")
        #expect(InterfaceAddresses.shared.current.contains(NumericAddress(ipv4: 0x7f00_0001)))
    }
}
