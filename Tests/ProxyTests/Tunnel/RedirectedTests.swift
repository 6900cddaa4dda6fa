import Cryptography
import Proxy
import TLSServer
import TestSupport
import Testing

/// The kernel's part is in `TransparentTests`. Here TLS comes to the proxy's port as it is.
@Suite("TLS without a CONNECT goes by its server name", .stopsProxies, .timeLimit(.minutes(2)))
struct RedirectedTests {
    /// `api.test` is intercepted, `plain.test` is listed only.
    private static func proxy(
        _ proxy: String = "", upstream: String = "intercept: true", _ ends: Recorder<String>? = nil
    ) async throws -> ProxyInProcess {
        var observer = ProxyObserver()
        if let ends { observer.connectEnded = { ends.append("\(String(decoding: $0, as: UTF8.self)): \($1)") } }
        return try await ProxyInProcess(
            upstream: upstream, proxy: proxy,
            more: "- {host: plain.test, url: ORIGIN, client: api, allow_plaintext: true}", observer: observer,
            isLogged: true)
    }

    /// Runs curl, whose connections all lead to the proxy's port.
    private func curl(_ proxy: ProxyInProcess, _ arguments: [String]) async throws -> ChildProcess {
        let folder = try TemporaryDirectory()
        let roots = try #require(proxy.server.interception).rootsPEM
        return try await ChildProcess.run(
            [
                "curl", "-sS", "--noproxy", "*", "--cacert", try folder.write(roots, to: "roots.pem"), "--connect-to",
                "::127.0.0.1:\(proxy.port)",
            ] + arguments, environment: ["SSL_CERT_FILE": nil])
    }

    /// The first bytes of a client that names this host.
    private static func hello(_ name: String) async throws -> [UInt8] {
        let script = """
            import ssl, sys
            out = ssl.MemoryBIO()
            tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=sys.argv[1])
            try: tls.do_handshake()
            except ssl.SSLWantReadError: print(out.read().hex())
            """
        let text = Array(try await ChildProcess.output(of: ["/usr/bin/python3", "-c", script, name]).utf8)
        return stride(from: 0, to: text.count - 1, by: 2).compactMap {
            UInt8(String(decoding: text[$0..<($0 + 2)], as: UTF8.self), radix: 16)
        }
    }

    private static let accessDenied: [UInt8] = [0x15, 3, 3, 0, 2, 2, 49]

    @Test func `a redirected connection to an intercepted host gets the token`() async throws {
        let proxy = try await Self.proxy()
        let run = try await curl(proxy, ["https://api.test/a", "https://api.test/b"])
        #expect(run.output == "okok", "\(run.transcript)")
        #expect(proxy.origin.requests.map(\.target) == ["/a", "/b"])
        #expect(proxy.origin.requests.allSatisfy { $0.authorization == ["Bearer T1"] })
        try await eventually("its records") { proxy.log.all.count == 3 }
        #expect(proxy.log.all.map { String(decoding: $0.method, as: UTF8.self) } == ["CONNECT", "GET", "GET"])
        #expect(String(decoding: proxy.log.all[0].host, as: UTF8.self) == "api.test:443")
        #expect(proxy.log.all.map(\.status) == [200, 200, 200])
    }

    /// A client that sends its ClientHello byte by byte, or in two records.
    private static let piecemeal = """
        import socket, ssl, sys
        port, roots, way = int(sys.argv[1]), sys.argv[2], sys.argv[3]
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = ssl.create_default_context(cafile=roots).wrap_bio(incoming, outgoing, server_hostname="api.test")
        def go(step):
            while True:
                try: return step()
                except ssl.SSLWantReadError: pass
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65536))
        try: tls.do_handshake()
        except ssl.SSLWantReadError: hello = outgoing.read()
        if way == "records":
            first, second = hello[5:70], hello[70:]
            hello = b"".join(b"\\x16\\x03\\x01" + len(part).to_bytes(2, "big") + part for part in (first, second))
        for byte in hello: connection.sendall(bytes([byte]))
        incoming.write(connection.recv(65536))
        go(tls.do_handshake)
        tls.write(b"GET /pieces HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n")
        connection.sendall(outgoing.read())
        print(go(lambda: tls.read(65536)).split(b"\\r\\n")[0].decode())
        """

    @Test(arguments: ["bytes", "records"])
    func `a redirected connection is served however its ClientHello is cut`(way: String) async throws {
        let proxy = try await Self.proxy()
        let folder = try TemporaryDirectory()
        let roots = try #require(proxy.server.interception).rootsPEM
        let output = try await ChildProcess.output(
            of: [
                "/usr/bin/python3", "-c", Self.piecemeal, "\(proxy.port)", try folder.write(roots, to: "roots.pem"),
                way,
            ])
        #expect(output == "HTTP/1.1 200 Answer\n")
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
    }

    @Test func `a request in redirected TLS has to name the same host, and come from no web page`() async throws {
        let proxy = try await Self.proxy()
        for field in ["Host: plain.test", "Host: nobody.test", "Host: api.test:80", "Sec-Fetch-Site: cross-site"] {
            let run = try await curl(
                proxy, ["-w", "%{http_code}", "-o", "/dev/null", "-H", field, "https://api.test/"])
            #expect(run.output == "403", "\(field) \(run.transcript)")
        }
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `redirected TLS to other hosts is refused, and the log says so`() async throws {
        let ends = Recorder<String>()
        let proxy = try await Self.proxy("", ends)
        for host in ["plain.test", "nobody.test"] {
            let client = try await proxy.connect()
            try await client.send(try await Self.hello(host))
            #expect(try await client.readToEnd() == Self.accessDenied)
        }
        #expect(ends.all.map { $0.prefix { $0 != ":" } } == ["plain.test", "nobody.test"])
        let nameless = try await curl(proxy, ["-k", "https://127.0.0.1/"])
        #expect(nameless.ending == .exited(35), "\(nameless.transcript)")
        #expect(ends.all.count == 3)
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `redirected bytes that are no ClientHello, or come too late, are refused`() async throws {
        let ends = Recorder<String>()
        let proxy = try await Self.proxy("header_timeout: 1s", ends)
        let hello = try await Self.hello("api.test")
        for bytes in [[0x16, 3, 1, 0, 0, 0], Array(hello.prefix(60)), [0x16]] {
            let client = try await proxy.connect()
            try await client.send(bytes)
            #expect(try await client.readToEnd() == Self.accessDenied)
        }
        #expect(ends.all.count == 3)
        let short = try await proxy.connect()
        try await short.send(Array(hello.prefix(60)))
        short.finishSending()
        #expect(try await short.readToEnd().isEmpty)
    }

    @Test func `a redirected connection is refused where proxy.users are asked for`() async throws {
        let ends = Recorder<String>()
        let proxy = try await Self.proxy("users: {me: secret of mine}", ends)
        let client = try await proxy.connect()
        try await client.send(try await Self.hello("api.test"))
        #expect(try await client.readToEnd() == Self.accessDenied)
        #expect(ends.all.count == 1)
    }

    @Test func `without interception and tunnels TLS on the listener gets a 400`() async throws {
        let proxy = try await Self.proxy("", upstream: "")
        let client = try await proxy.connect()
        try await client.send([0x16])
        #expect(try await client.response().status == 400)
    }

    @Test func `a tunnel to any host needs the address that the program dialled`() async throws {
        let proxy = try await ProxyInProcess.tunnelling("'*'")
        let client = try await proxy.connect()
        try await client.send(try await Self.hello("other.test"))
        // Without a redirection there is no address to dial.
        #expect(try await client.readToEnd() == Self.accessDenied)
    }
}
