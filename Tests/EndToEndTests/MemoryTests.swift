import TestSupport
import Testing

@Suite("memory stays bounded", .timeLimit(.minutes(10)))
struct MemoryTests {
    private static let gigabyte = 1 << 30
    private static let mebibyte = 1 << 20

    private func proxy(to origin: RecordingOrigin) async throws -> RunningProxy {
        let proxy = try await RunningProxy(to: origin)
        // The memory of the first request stays, and is not tested here.
        #expect(try await proxy.get("http://api.test/warm").status == 200)
        return proxy
    }

    private static func origin() throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            switch exchange.head.target {
            case "/gigabyte": try exchange.flood(gigabyte)
            default: try exchange.respond(body: "\(try exchange.readBody().bodyCount)")
            }
        }
    }

    @Test func `a download of 1 GiB costs less than 32 MiB`() async throws {
        let origin = try Self.origin()
        let proxy = try await proxy(to: origin)
        let before = try proxy.process.residentMemory()
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://api.test/gigabyte HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
        let head = try await client.read(until: "\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 200 "))
        let count = try await client.countToEnd(within: .seconds(300))
        #expect(count == Self.gigabyte, "\(proxy.process.transcript)")
        #expect(try proxy.process.peakResidentMemory() - before < 32 * Self.mebibyte)
    }

    @Test(arguments: [true, false])
    func `an upload of 1 GiB costs less than 32 MiB`(chunked: Bool) async throws {
        let origin = try Self.origin()
        let proxy = try await proxy(to: origin)
        let before = try proxy.process.residentMemory()
        let client = try await RawClient.connect(port: proxy.port)
        let framing = chunked ? "Transfer-Encoding: chunked" : "Content-Length: \(Self.gigabyte)"
        try await client.send("POST http://api.test/up HTTP/1.1\r\nHost: api.test\r\n\(framing)\r\n\r\n")
        let block = [UInt8](repeating: 0x79, count: 256 * 1024)
        let piece = chunked ? Array("\(String(block.count, radix: 16))\r\n".utf8) + block + [13, 10] : block
        try await client.send(piece, times: Self.gigabyte / block.count, within: .seconds(300))
        if chunked { try await client.send("0\r\n\r\n") }
        let response = try await client.response(to: "POST", within: .seconds(60))
        #expect(response.text == "\(Self.gigabyte)")
        #expect(try proxy.process.peakResidentMemory() - before < 32 * Self.mebibyte)
    }

    @Test func `100 clients that stop reading cost less than 64 MiB, over one connection with HTTP2`() async throws {
        let server = try ChildProcess([try Repository.python(), Repository.fixture("h2_server.py"), "--streams", "200"])
        let proxy = try await RunningProxy(
            to: "http://127.0.0.1:\(try await server.printedPort())", proxy: "threads: 1",
            upstream: "http2: prior-knowledge")
        #expect(try await proxy.get("http://api.test/x").text == "1")
        let before = try proxy.process.residentMemory()
        var clients: [RawClient] = []
        for _ in 0..<100 {
            let client = try await RawClient.connect(port: proxy.port, receiveBuffer: 4096)
            try await client.send("GET http://api.test/large HTTP/1.1\r\nHost: api.test\r\n\r\n")
            _ = try await client.read(until: "\r\n\r\n")
            clients.append(client)
        }
        // One that reads gets all, at full speed.
        let large = try await proxy.get("http://api.test/large")
        #expect(large.body.count == 32 * Self.mebibyte)
        #expect(try await proxy.get("http://api.test/x").text == "1")
        #expect(try proxy.process.peakResidentMemory() - before < 64 * Self.mebibyte)
        for client in clients { client.close() }
        try await server.stop()
    }

    @Test func `50 clients that stop reading cost less than 64 MiB together`() async throws {
        let origin = try Self.origin()
        let proxy = try await proxy(to: origin)
        let before = try proxy.process.residentMemory()
        var clients: [RawClient] = []
        for _ in 0..<50 {
            let client = try await RawClient.connect(port: proxy.port, receiveBuffer: 4096)
            try await client.send("GET http://api.test/gigabyte HTTP/1.1\r\nHost: api.test\r\n\r\n")
            clients.append(client)
        }
        for client in clients { _ = try await client.read(until: "\r\n\r\n") }
        // All are in mid-response and none reads on.
        for client in [clients[0], clients[49]] { try await client.isStuck() }
        _ = try await settled("its memory no longer changes", for: .milliseconds(300)) {
            try proxy.process.residentMemory()
        }
        #expect(try proxy.process.peakResidentMemory() - before < 64 * Self.mebibyte)
        #expect(origin.connections.filter(\.isOver).isEmpty)
        // The proxy still serves clients that read.
        #expect(try await proxy.get("http://api.test/other").status == 200)
        withExtendedLifetime(clients) {}
    }

    @Test func `50 uploads to an origin that does not read cost less than 64 MiB together`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/deaf" { gate.wait() }
            try exchange.respond(body: "done")
        }
        defer { gate.open() }
        let proxy = try await proxy(to: origin)
        let before = try proxy.process.residentMemory()
        let block = [UInt8](repeating: 0x7A, count: 64 * 1024)
        try await withThrowingTaskGroup(of: RawClient.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    let client = try await RawClient.connect(port: proxy.port)
                    try await client.send(
                        "POST http://api.test/deaf HTTP/1.1\r\nHost: api.test\r\nContent-Length: \(Self.gigabyte)\r\n\r\n"
                    )
                    // Sends until the proxy stops reading, because backpressure has reached the client.
                    try? await client.send(block, times: 1024, within: .seconds(5))
                    return client
                }
            }
            var clients: [RawClient] = []
            for try await client in group { clients.append(client) }
            #expect(try proxy.process.peakResidentMemory() - before < 64 * Self.mebibyte)
            withExtendedLifetime(clients) {}
        }
    }

    @Test func `token endpoints that answer without end cost less than 32 MiB together`() async throws {
        let upstream = try await EndlessUpstream()
        let names = EndlessUpstream.plain
        let configuration = ProxyConfiguration(
            clients: names.map {
                ProxyConfiguration.client(
                    $0, tokenEndpoint: "http://127.0.0.1:\(upstream.port)/\($0)", "timeout: 2s")
            },
            upstreams: names.map {
                ProxyConfiguration.upstream("\($0).test", url: "http://127.0.0.1:1").replacing(
                    "client: api", with: "client: \($0)")
            })
        let proxy = try await RunningProxy(configuration)
        #expect(try await proxy.get("http://nobody.test/").status == 403)
        let before = try proxy.process.residentMemory()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for name in names { group.addTask { try await proxy.get("http://\(name).test/").status } }
            for try await status in group { #expect(status == 503) }
        }
        #expect(try proxy.process.peakResidentMemory() - before < 32 * Self.mebibyte)
        try await upstream.stop()
    }
}
