import TestSupport
import Testing

@Suite("WebSockets, by real libraries", .timeLimit(.minutes(3)))
struct WebSocketTests {
    /// A WebSocket server, with TLS or without, and the proxy in front of it, under `ws.test` and at a listener of its
    /// own.
    private struct Place: Sendable {
        let server: ChildProcess
        let serverPort: UInt16
        let proxy: RunningProxy
        let endpoint: RecordingOrigin
        let authority: PrivateCA

        var base: String { "ws://127.0.0.1:\(proxy.upstreamPort)" }
        var listener: String { "127.0.0.1:\(proxy.port)" }

        init(tls: Bool, proxy more: String = "", upstream: String = "") async throws {
            authority = try await PrivateCA()
            let certificate = try await authority.server()
            server = try ChildProcess(
                [try Repository.python(), fixture("web_sockets.py"), "serve"]
                    + (tls ? [certificate.certificateFile, certificate.keyFile] : []))
            let port = try await server.printedPort()
            serverPort = port
            endpoint = try tokenEndpoint()
            proxy = try await RunningProxy(
                configuration(
                    tokenEndpoint: endpoint.url, proxy: more,
                    upstreams: EndToEndTests.upstream(
                        "ws.test", url: "\(tls ? "https" : "http")://localhost:\(port)",
                        more: "listen: 127.0.0.1:0\n"
                            + (tls ? "tls: {ca_file: \(authority.certificateFile)}\n" : "") + upstream)),
                listeners: 2)
        }

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
        let place = try await Place(tls: tls)
        #expect(
            try await place.talk("websockets", "\(place.base)/chat") == ["saw Bearer \(token) subprotocol talk"]
                + Self.talk)
        try await eventually("the server sees the end") { place.server.output.hasSuffix("closed /chat 1000\n") }
        #expect(place.endpoint.requests.count == 1)
    }

    @Test(arguments: [true, false])
    func `and through the proxy, by its Host`(tls: Bool) async throws {
        let place = try await Place(tls: tls)
        #expect(
            try await place.talk("websockets", "ws://ws.test/chat?x=1", by: place.listener)
                == ["saw Bearer \(token) subprotocol talk"] + Self.talk)
        #expect(place.server.output.contains("open /chat?x=1 Bearer \(token)\n"))
    }

    @Test func `aiohttp goes through the proxy by the whole URL`() async throws {
        let place = try await Place(tls: true)
        #expect(
            try await place.talk("aiohttp", "ws://ws.test/chat", by: "proxy=\(place.proxy.url)")
                == ["saw Bearer \(token)", "same True", "same True", "end 1000"])
    }

    @Test func `websocket-client talks too`() async throws {
        let place = try await Place(tls: true)
        #expect(
            try await place.talk("websocket-client", "\(place.base)/chat")
                == ["saw Bearer \(token)", "same True", "end"])
    }

    @Test func `a library that asks the proxy for CONNECT gets a tunnel, and no token`() async throws {
        let place = try await Place(tls: false)
        let port = place.serverPort
        let tunnelling = try await RunningProxy(
            configuration(
                tokenEndpoint: place.endpoint.url, proxy: "connect: tunnel\ntunnels: [localhost:\(port)]",
                upstreams: upstream(url: "http://127.0.0.1:1")))
        let lines = try await place.talk("websockets", "ws://localhost:\(port)/chat", by: "proxy=\(tunnelling.url)")
        #expect(lines == ["saw  subprotocol talk"] + Self.talk)
    }

    @Test(arguments: [true, false])
    func `a refusal reaches the library as it was said`(tls: Bool) async throws {
        let place = try await Place(tls: tls)
        #expect(try await place.talk("websockets", "\(place.base)/refuse") == ["refused 403 not you"])
    }

    @Test(arguments: [true, false])
    func `the server's close reaches the library with its code`(tls: Bool) async throws {
        let place = try await Place(tls: tls)
        let start = ContinuousClock.now
        #expect(
            try await place.talk("websockets", "\(place.base)/close") == [
                "saw Bearer \(token) subprotocol talk", "end 4001 enough",
            ])
        #expect(ContinuousClock.now - start < .seconds(10))
        try await eventually("the server sees the end") { place.server.output.hasSuffix("closed /close 4001\n") }
    }

    @Test(arguments: [true, false])
    func `a program that is killed ends it for the server within a second`(tls: Bool) async throws {
        let place = try await Place(tls: tls)
        let program = try ChildProcess(
            [try Repository.python(), fixture("web_sockets.py"), "hold", "\(place.base)/chat"])
        try await eventually("it is held") { program.output == "held\n" }
        program.kill()
        try await program.ended()
        try await eventually("the server sees the end", within: .seconds(1)) {
            place.server.output.hasSuffix("closed /chat 1006\n")
        }
    }

    @Test(arguments: [true, false])
    func `a server that is killed ends it for the program within a second`(tls: Bool) async throws {
        let place = try await Place(tls: tls)
        let program = try ChildProcess(
            [try Repository.python(), fixture("web_sockets.py"), "hold", "\(place.base)/chat"])
        try await eventually("it is held") { program.output == "held\n" }
        place.server.kill()
        try await place.server.ended()
        try await eventually("the program sees the end", within: .seconds(1)) {
            program.output == "held\nend 1006\n"
        }
    }

    @Test func `SIGTERM leaves it drain_timeout`() async throws {
        let place = try await Place(tls: true, proxy: "drain_timeout: 1s")
        let program = try ChildProcess(
            [try Repository.python(), fixture("web_sockets.py"), "hold", "\(place.base)/chat"])
        try await eventually("it is held") { program.output == "held\n" }
        let start = ContinuousClock.now
        #expect(try await place.proxy.terminate() == .exited(0))
        #expect(ContinuousClock.now - start >= .milliseconds(900))
        try await eventually("the program sees the end", within: .seconds(2)) {
            program.output == "held\nend 1006\n"
        }
    }

    @Test func `beside requests over HTTP 2 to the same upstream`() async throws {
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
        let endpoint = try tokenEndpoint()
        let proxy = try await RunningProxy(
            configuration(
                tokenEndpoint: endpoint.url,
                upstreams: upstream(
                    "ws.test", url: "https://localhost:\(nginx.httpsPort)",
                    more: "http2: true\nlisten: 127.0.0.1:0\ntls: {ca_file: \(authority.certificateFile)}")),
            listeners: 2)
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
    func `through a next proxy, which sees no token where there is TLS`(tls: Bool) async throws {
        let place = try await Place(tls: tls)
        let next = try await RunningProxy(
            configuration(
                tokenEndpoint: place.endpoint.url, proxy: "connect: tunnel\ntunnels: [localhost:\(place.serverPort)]",
                upstreams: upstream(url: "http://127.0.0.1:1")))
        let first = try await RunningProxy(
            configuration(
                tokenEndpoint: place.endpoint.url,
                upstreams: upstream(
                    "ws.test", url: "\(tls ? "https" : "http")://localhost:\(place.serverPort)",
                    more: "listen: 127.0.0.1:0\nproxy: \(next.url)\n"
                        + (tls ? "tls: {ca_file: \(place.authority.certificateFile)}" : ""))), listeners: 2)
        #expect(
            try await place.talk("websockets", "ws://127.0.0.1:\(first.upstreamPort)/chat")
                == ["saw Bearer \(token) subprotocol talk"] + Self.talk)
        try await eventually("the next proxy's log") { next.log.contains("method=CONNECT") }
    }

    // MARK: Ends of TLS

    private struct Ground {
        let server: ChildProcess
        let proxy: RunningProxy
        let endpoint: RecordingOrigin
        let authority: PrivateCA
    }

    private func ground() async throws -> Ground {
        let authority = try await PrivateCA()
        let certificate = try await authority.server()
        let server = try ChildProcess(
            ["/usr/bin/python3", fixture("tls_upgrades.py"), certificate.certificateFile, certificate.keyFile])
        let port = try await server.printedPort()
        let endpoint = try tokenEndpoint()
        let proxy = try await RunningProxy(
            configuration(
                tokenEndpoint: endpoint.url,
                upstreams: upstream(
                    url: "https://localhost:\(port)", more: "tls: {ca_file: \(authority.certificateFile)}")))
        return Ground(server: server, proxy: proxy, endpoint: endpoint, authority: authority)
    }

    private func open(_ proxy: RunningProxy, _ path: String) async throws -> RawClient {
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send(
            "GET http://api.test\(path) HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
        #expect(try await client.response().status == 101)
        return client
    }

    @Test(arguments: ["/farewell", "/silent-end", "/reset"])
    func `every kind of end reaches the client within a second, behind what was said before`(path: String) async throws
    {
        let ground = try await ground()
        let client = try await open(ground.proxy, path)
        #expect(try await client.readToEnd(within: .seconds(1)) == Array("bye".utf8))
        if path != "/reset" {
            client.close()
            try await eventually("the server's side ends too", within: .seconds(3)) {
                ground.server.output.hasSuffix("ended \(path)\n")
            }
        }
    }

    @Test func `the client's end reaches the server within a second, behind what was said before`() async throws {
        let ground = try await ground()
        let client = try await open(ground.proxy, "/echo")
        try await client.send("hello")
        client.finishSending()
        #expect(try await client.readToEnd(within: .seconds(2)) == Array("hello".utf8))
        try await eventually("the server sees the end", within: .seconds(1)) {
            ground.server.output.hasSuffix("ended /echo\n")
        }
    }

    @Test func `megabytes there and back over TLS`() async throws {
        let ground = try await ground()
        let client = try await open(ground.proxy, "/echo")
        var bytes = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        while bytes.count < 8 << 20 { bytes += bytes }
        let sent = bytes
        async let sending: Void = client.send(sent, within: .seconds(30))
        #expect(try await client.read(count: sent.count, within: .seconds(30)) == sent)
        try await sending
    }
}
