import TestSupport
import Testing

@Suite("WebSockets, by real libraries", .timeLimit(.minutes(3)))
struct WebSocketTests {
    /// A WebSocket server, with TLS or without, and the proxy in front of it, under `ws.test` and at a listener of its
    /// own.
    private struct ServerAndProxy: Sendable {
        let server: ChildProcess
        let proxy: RunningProxy
        /// `http://` or `https://`.
        let serverURL: String
        /// The CA's file, for an upstream; empty without TLS.
        let trust: String

        var base: String { "ws://127.0.0.1:\(proxy.upstreamPort)" }
        var listener: String { "127.0.0.1:\(proxy.port)" }
        var serverPort: String { String(serverURL.split(separator: ":").last ?? "") }

        init(tls: Bool, proxy lines: String = "", upstream: String = "") async throws {
            let command = [try Repository.python(), fixture("web_sockets.py"), "serve"]
            if tls {
                let server = try await TLSServerProcess(command)
                self.server = server.process
                serverURL = "https://localhost:\(server.port)"
                trust = "tls: {ca_file: \(server.authority.certificateFile)}\n"
                tlsServer = server
            } else {
                server = try ChildProcess(command)
                serverURL = "http://localhost:\(try await server.printedPort())"
                trust = ""
                tlsServer = nil
            }
            proxy = try await RunningProxy(
                to: serverURL, host: "ws.test", proxy: lines, upstream: "listen: 127.0.0.1:0\n" + trust + upstream,
                listeners: 2)
        }

        /// Keeps its files.
        private let tlsServer: TLSServerProcess?

        func talk(_ library: String, _ url: String, by proxy: String = "-") async throws -> [String] {
            try await ChildProcess.output(
                of: [try Repository.python(), fixture("web_sockets.py"), "talk", library, url, proxy],
                environment: ["http_proxy": nil, "https_proxy": nil, "all_proxy": nil, "no_proxy": nil]
            ).split(separator: "\n").map(String.init)
        }
    }

    private static let talk = [
        "same True", "same True", "same True", "same True", "same True", "many True", "end 1000",
    ]

    @Test(arguments: [true, false])
    func `websockets talks at the upstream's own listener`(tls: Bool) async throws {
        let running = try await ServerAndProxy(tls: tls)
        #expect(
            try await running.talk("websockets", "\(running.base)/chat") == ["saw Bearer \(token) subprotocol talk"]
                + Self.talk)
        try await eventually("the server sees the end") { running.server.output.hasSuffix("closed /chat 1000\n") }
        #expect(running.proxy.tokenRequests == 1)
    }

    @Test(arguments: [true, false])
    func `websockets talks through the proxy, by its Host`(tls: Bool) async throws {
        let running = try await ServerAndProxy(tls: tls)
        #expect(
            try await running.talk("websockets", "ws://ws.test/chat?x=1", by: running.listener)
                == ["saw Bearer \(token) subprotocol talk"] + Self.talk)
        #expect(running.server.output.contains("open /chat?x=1 Bearer \(token)\n"))
    }

    @Test func `aiohttp goes through the proxy by the whole URL`() async throws {
        let running = try await ServerAndProxy(tls: true)
        #expect(
            try await running.talk("aiohttp", "ws://ws.test/chat", by: "proxy=\(running.proxy.url)")
                == ["saw Bearer \(token)", "same True", "same True", "end 1000"])
    }

    @Test func `websocket-client talks through the proxy, too`() async throws {
        let running = try await ServerAndProxy(tls: true)
        #expect(
            try await running.talk("websocket-client", "\(running.base)/chat")
                == ["saw Bearer \(token)", "same True", "end"])
    }

    @Test(arguments: ["websockets", "websocket-client"])
    func `a library that asks the proxy for CONNECT gets its token`(library: String) async throws {
        let running = try await ServerAndProxy(tls: true)
        let lines = try await running.talk(library, "ws://ws.test/chat", by: "proxy=\(running.proxy.url)")
        #expect(lines.first?.hasPrefix("saw Bearer \(token)") == true, "\(lines)")
    }

    @Test func `a host that is only in tunnels gets a tunnel, and no token`() async throws {
        let running = try await ServerAndProxy(tls: false)
        let port = running.serverPort
        let tunnelling = try await RunningProxy(
            to: "http://127.0.0.1:1", proxy: "connect: tunnel\ntunnels: [localhost:\(port)]")
        let lines = try await running.talk("websockets", "ws://localhost:\(port)/chat", by: "proxy=\(tunnelling.url)")
        #expect(lines == ["saw  subprotocol talk"] + Self.talk)
    }

    @Test(arguments: [true, false])
    func `a refusal reaches the WebSocket library as it was said`(tls: Bool) async throws {
        let running = try await ServerAndProxy(tls: tls)
        #expect(try await running.talk("websockets", "\(running.base)/refuse") == ["refused 403 not you"])
    }

    @Test(arguments: [true, false])
    func `the server's close reaches the library with its code`(tls: Bool) async throws {
        let running = try await ServerAndProxy(tls: tls)
        let start = ContinuousClock.now
        #expect(
            try await running.talk("websockets", "\(running.base)/close") == [
                "saw Bearer \(token) subprotocol talk", "end 4001 enough",
            ])
        #expect(ContinuousClock.now - start < .seconds(10))
        try await eventually("the server sees the end") { running.server.output.hasSuffix("closed /close 4001\n") }
    }

    @Test(arguments: [true, false])
    func `a program that is killed ends its WebSocket for the server within a second`(tls: Bool) async throws {
        let running = try await ServerAndProxy(tls: tls)
        let fastest = try await shortest(under: .seconds(1)) {
            let program = try ChildProcess(
                [try Repository.python(), fixture("web_sockets.py"), "hold", "\(running.base)/chat"])
            try await eventually("it is held") { program.output == "held\n" }
            program.kill()
            try await program.ended()
            return try await time(until: "the server sees the end") {
                running.server.output.hasSuffix("closed /chat 1006\n")
            }
        }
        #expect(fastest < .seconds(1))
    }

    @Test(arguments: [true, false])
    func `a server that is killed ends its WebSocket for the program within a second`(tls: Bool) async throws {
        let fastest = try await shortest(under: .seconds(1)) {
            let running = try await ServerAndProxy(tls: tls)
            let program = try ChildProcess(
                [try Repository.python(), fixture("web_sockets.py"), "hold", "\(running.base)/chat"])
            try await eventually("it is held") { program.output == "held\n" }
            running.server.kill()
            try await running.server.ended()
            return try await time(until: "the program sees the end") { program.output == "held\nend 1006\n" }
        }
        #expect(fastest < .seconds(1))
    }

    @Test func `SIGTERM leaves a WebSocket drain_timeout`() async throws {
        let running = try await ServerAndProxy(tls: true, proxy: "drain_timeout: 1s")
        let program = try ChildProcess(
            [try Repository.python(), fixture("web_sockets.py"), "hold", "\(running.base)/chat"])
        try await eventually("it is held") { program.output == "held\n" }
        let start = ContinuousClock.now
        #expect(try await running.proxy.terminate() == .exited(0))
        #expect(ContinuousClock.now - start >= .milliseconds(900))
        try await eventually("the program sees the end") { program.output == "held\nend 1006\n" }
    }

    @Test func `a WebSocket works beside requests over HTTP 2 to the same upstream`() async throws {
        let authority = try await PrivateCA()
        let server = try ChildProcess([try Repository.python(), fixture("web_sockets.py"), "serve"])
        let nginx = try await Nginx(
            certificate: try await authority.server(),
            locations: Nginx.sayWhatArrived + """

                location /chat {
                    proxy_pass http://localhost:\(try await server.printedPort());
                    proxy_http_version 1.1;
                    proxy_set_header Upgrade $http_upgrade;
                    proxy_set_header Connection $http_connection;
                }
                """)
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)", host: "ws.test",
            upstream: "http2: true\nlisten: 127.0.0.1:0\ntls: {ca_file: \(authority.certificateFile)}", listeners: 2)
        for _ in 0..<2 {
            #expect(try await proxy.get("http://ws.test/x").text.contains("protocol: HTTP/2.0\n"))
            let lines = try await ChildProcess.output(
                of: [
                    try Repository.python(), fixture("web_sockets.py"), "talk", "websockets",
                    "ws://127.0.0.1:\(proxy.upstreamPort)/chat", "-",
                ]
            ).split(separator: "\n").map(String.init)
            #expect(lines == ["saw Bearer \(token) subprotocol talk"] + Self.talk)
        }
    }

    @Test(arguments: [true, false])
    func `a WebSocket goes through a next proxy, which sees no token where there is TLS`(tls: Bool) async throws {
        let running = try await ServerAndProxy(tls: tls)
        let next = try await RunningProxy(
            to: "http://127.0.0.1:1", proxy: "connect: tunnel\ntunnels: [localhost:\(running.serverPort)]")
        let first = try await RunningProxy(
            to: running.serverURL, host: "ws.test",
            upstream: "listen: 127.0.0.1:0\nproxy: \(next.url)\n" + running.trust, listeners: 2)
        #expect(
            try await running.talk("websockets", "ws://127.0.0.1:\(first.upstreamPort)/chat")
                == ["saw Bearer \(token) subprotocol talk"] + Self.talk)
        try await eventually("the next proxy's log") { next.log.contains("method=CONNECT") }
    }

    // MARK: Ends of TLS

    /// `Fixtures/tls_upgrades.py`, and the proxy in front of it.
    private func serverAndProxy() async throws -> (server: TLSServerProcess, proxy: RunningProxy) {
        let server = try await TLSServerProcess(["/usr/bin/python3", fixture("tls_upgrades.py")])
        let proxy = try await RunningProxy(
            to: "https://localhost:\(server.port)", upstream: "tls: {ca_file: \(server.authority.certificateFile)}")
        return (server, proxy)
    }

    private func open(_ proxy: RunningProxy, _ path: String) async throws -> RawClient {
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send(
            "GET http://api.test\(path) HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
        #expect(try await client.response().status == 101)
        return client
    }

    @Test(arguments: ["/farewell", "/silent-end", "/reset"])
    func `every end of the server reaches the client within a second, behind what was said before`(path: String)
        async throws
    {
        let running = try await serverAndProxy()
        let fastest = try await shortest(under: .seconds(1)) {
            let start = ContinuousClock.now
            let client = try await open(running.proxy, path)
            #expect(try await client.readToEnd() == Array("bye".utf8))
            let time = ContinuousClock.now - start
            if path != "/reset" {
                client.close()
                try await eventually("the server's side ends too") {
                    running.server.output.hasSuffix("ended \(path)\n")
                }
            }
            return time
        }
        #expect(fastest < .seconds(1))
    }

    @Test func `the client's end reaches the server within a second, behind what was said before`() async throws {
        let running = try await serverAndProxy()
        let fastest = try await shortest(under: .seconds(1)) {
            let client = try await open(running.proxy, "/echo")
            try await client.send("hello")
            client.finishSending()
            let start = ContinuousClock.now
            #expect(try await client.readToEnd() == Array("hello".utf8))
            try await eventually("the server sees the end") { running.server.output.hasSuffix("ended /echo\n") }
            return .now - start
        }
        #expect(fastest < .seconds(1))
    }

    @Test func `megabytes go there and back over TLS in a WebSocket`() async throws {
        let running = try await serverAndProxy()
        let client = try await open(running.proxy, "/echo")
        var bytes = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        while bytes.count < 8 << 20 { bytes += bytes }
        let sent = bytes
        async let sending: Void = client.send(sent, within: .seconds(30))
        #expect(try await client.read(count: sent.count, within: .seconds(30)) == sent)
        try await sending
    }
}
