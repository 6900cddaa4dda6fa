import Foundation
import Synchronization
import TestSupport
import Testing

/// Bad company of each kind, while a client that behaves is served all the time.
@Suite("load and slowness", .timeLimit(.minutes(5)))
struct LoadTests {
    private static let mebibyte = 1 << 20
    private static let request = "GET http://api.test/fine HTTP/1.1\r\nHost: api.test\r\n\r\n"

    /// An origin that answers `/fine`, and everything else as `handler` says; and a proxy in front of it.
    private static func proxyAndOrigin(
        proxy: String = "", upstream: String = "", under wrapper: [String] = [],
        _ handler: @escaping RecordingOrigin.Handler = { try $0.respond() }
    ) async throws -> ProxyAndOrigin {
        let running = try await ProxyAndOrigin(
            proxy: proxy, upstream: upstream, more: "log: {access: false}", under: wrapper
        ) { exchange in
            exchange.head.target == "/fine" ? try exchange.respond(body: "fine") : try handler(exchange)
        }
        #expect(try await running.proxy.get("http://api.test/fine").status == 200)
        return running
    }

    // MARK: Crowds

    @Test(arguments: [1024, 12_000])
    func `a burst of 10,000 connects leaves requests served and memory bounded`(places: Int) async throws {
        let running = try await Self.proxyAndOrigin(proxy: "max_connections: \(places)")
        let kept = SteadyClient(running.proxy)
        try await kept.serves(3)
        let before = try running.proxy.process.residentMemory()
        let burst = try ChildProcess(
            [try Repository.python(), fixture("connect_burst.py"), "\(running.proxy.port)", "10000"])
        try await eventually("the burst") { burst.output.hasPrefix("sent ") }
        try await kept.serves(20)
        // A new client is served as well: waiting clients get the slots of idle connections.
        for _ in 0..<3 { #expect(try await running.proxy.get("http://api.test/fine").status == 200) }
        #expect(try running.proxy.process.peakResidentMemory() - before < 48 * Self.mebibyte)
        burst.kill()
        for _ in 0..<20 { #expect(try await running.proxy.get("http://api.test/fine").status == 200) }
        try await kept.stop()
        #expect(try await running.proxy.terminate() == .exited(0))
    }

    @Test func `clients of a proxy with few file descriptors wait instead of failing`() async throws {
        let running = try await Self.proxyAndOrigin(under: ["prlimit", "--nofile=128:128"])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    let client = try await RawClient.connect(port: running.proxy.port)
                    for _ in 0..<2 {
                        try await client.send(Self.request)
                        #expect(try await client.response(within: .seconds(60)).status == 200)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(!running.proxy.log.contains("could not be accepted"))
        #expect(running.proxy.log.contains("fewer clients at once than max_connections"))
        #expect(try await running.proxy.terminate() == .exited(0))
    }

    @Test(.enabled(if: geteuid() == 0, "only root may look into the proxy, which forbids dumps"))
    func `when descriptors run out, clients inside go on, and the others come in later`() async throws {
        let running = try await Self.proxyAndOrigin(proxy: "idle_timeout: 1h")
        let kept = SteadyClient(running.proxy)
        try await kept.serves(3)
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(running.proxy.process.pid)/fd").count
        try await ChildProcess.output(
            of: ["prlimit", "--pid", "\(running.proxy.process.pid)", "--nofile=\(open + 20):20000"])
        var silent: [RawClient] = []
        for _ in 0..<60 { silent.append(try await RawClient.connect(port: running.proxy.port)) }
        try await eventually("it notices") { running.proxy.log.contains("could not be accepted") }
        try await kept.serves(20)
        for _ in 0..<3 { #expect(try await running.proxy.get("http://api.test/fine").status == 200) }
        for client in silent { client.close() }
        for _ in 0..<20 { #expect(try await running.proxy.get("http://api.test/fine").status == 200) }
        try await kept.stop()
        let complaints = running.proxy.log.split(separator: "\n").filter { $0.contains("could not be accepted") }.count
        #expect(complaints < 10, "a full table is no reason to fill the log")
        #expect(try await running.proxy.terminate() == .exited(0))
    }

    // MARK: Slow clients

    @Test func `two hundred slow heads get 408 in header_timeout`() async throws {
        let running = try await Self.proxyAndOrigin(proxy: "header_timeout: 1s")
        let steady = SteadyClient(running.proxy)
        let before = try running.proxy.process.residentMemory()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    let client = try await RawClient.connect(port: running.proxy.port)
                    // Time itself: bytes keep coming, and only the limit for the whole head ends it.
                    for byte in "GET http://api.test/slow HTTP/1.1\r\nHost: api.test\r\nX-Slow: \(Self.drip)".utf8 {
                        do { try await client.send([byte]) } catch { break }
                        try await Task.sleep(for: .milliseconds(20))
                    }
                    let answer = String(decoding: try await client.readToEnd(), as: UTF8.self)
                    #expect(answer.hasPrefix("HTTP/1.1 408 ") || answer.isEmpty)
                }
            }
            try await steady.serves(20)
            try await group.waitForAll()
        }
        try await steady.stop()
        #expect(try running.proxy.process.peakResidentMemory() - before < 16 * Self.mebibyte)
    }
    private static let drip = String(repeating: "s", count: 40)

    @Test func `slow bodies are cut when they stall, and only then`() async throws {
        let running = try await Self.proxyAndOrigin(proxy: "idle_timeout: 1s") { exchange in
            try exchange.respond(body: "\(try exchange.readBody().bodyCount)")
        }
        let head = "POST http://api.test/up HTTP/1.1\r\nHost: api.test\r\nContent-Length: 20\r\n\r\n"
        let stalled = try await RawClient.connect(port: running.proxy.port)
        try await stalled.send(head + "stalled")
        let slow = try await RawClient.connect(port: running.proxy.port)
        try await slow.send(head)
        // Time itself: twice idle_timeout in all.
        for _ in 0..<20 {
            try await slow.send("s")
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(try await slow.response(to: "POST").text == "20")
        #expect(try await stalled.response(to: "POST").status == 408)
        #expect(try await running.proxy.get("http://api.test/fine").status == 200)
        #expect(running.origin.requests.filter { $0.target == "/up" && $0.isComplete }.count == 1)
    }

    @Test func `a reader that stalls is cut, one that is slow is not`() async throws {
        let running = try await Self.proxyAndOrigin(proxy: "idle_timeout: 1s") { try $0.flood(64 << 20) }
        let steady = SteadyClient(running.proxy)
        let before = try running.proxy.process.residentMemory()
        let ask = "GET http://api.test/flood HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"
        let stalled = try await RawClient.connect(port: running.proxy.port, receiveBuffer: 4096)
        try await stalled.send(ask)
        let slow = try await RawClient.connect(port: running.proxy.port, receiveBuffer: 4096)
        try await slow.send(ask)
        _ = try await slow.read(until: "\r\n\r\n")
        // Time itself: twice idle_timeout in all.
        for _ in 0..<20 {
            _ = try await slow.read(count: 50_000)
            try await Task.sleep(for: .milliseconds(100))
        }
        try await eventually("the stalled one is cut") { running.origin.connections.contains { $0.isOver } }
        // Only the bytes in the kernel's buffers: fewer than announced.
        #expect(try await stalled.readToEnd().count < 64 << 20)
        _ = try await slow.read(count: 1_000_000)
        try await steady.stop()
        #expect(try running.proxy.process.peakResidentMemory() - before < 8 * Self.mebibyte)
    }

    // MARK: Clients without end

    @Test(arguments: ["api.test/large", "unknown.test/"])
    func `a client that pipelines for ever and never reads is stopped, and cut in idle_timeout`(target: String)
        async throws
    {
        let running = try await Self.proxyAndOrigin(proxy: "idle_timeout: 2s") {
            try $0.respond(body: String(repeating: "l", count: 100_000))
        }
        let steady = SteadyClient(running.proxy)
        try await steady.serves(1)
        let before = try running.proxy.process.residentMemory()
        let client = try await RawClient.connect(port: running.proxy.port, receiveBuffer: 4096)
        let host = target.prefix { $0 != "/" }
        let block = Array(
            String(repeating: "GET http://\(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n", count: 1000).utf8)
        await #expect(throws: (any Error).self) {
            try await client.send(block, times: 10_000, within: .seconds(30))
        }
        try await steady.serves(5)
        try await steady.stop()
        #expect(try running.proxy.process.peakResidentMemory() - before < 8 * Self.mebibyte)
        #expect(try await !client.readToEnd().isEmpty)
    }

    @Test func `a client that pipelines for ever and reads it all leaves the others their turn`() async throws {
        let running = try await Self.proxyAndOrigin()
        let greedy = try await RawClient.connect(port: running.proxy.port)
        let block = Array(
            String(repeating: "GET http://unknown.test/ HTTP/1.1\r\nHost: unknown.test\r\n\r\n", count: 1000).utf8)
        let sending = Task { try? await greedy.send(block, times: 1_000_000, within: .seconds(120)) }
        _ = try await greedy.read(count: 1_000_000)
        let reading = Task { try? await greedy.countToEnd() }
        let steady = SteadyClient(running.proxy)
        try await steady.serves(20)
        try await steady.stop()
        greedy.close()
        _ = await (reading.value, sending.value)
    }

    // MARK: Upstreams without end

    @Test func `an upstream that drips for ever holds its own client only`() async throws {
        let running = try await Self.proxyAndOrigin(upstream: "response_timeout: 2s\nidle_timeout: 1s") { exchange in
            switch exchange.head.target {
            case "/body":
                try exchange.startChunked()
                while true {
                    try exchange.chunk("d")
                    exchange.pause(.milliseconds(5))
                }
            case "/head":
                try exchange.send("HTTP/1.1 200 Slow\r\nX-Drip: ")
                while true {
                    try exchange.send("d")
                    exchange.pause(.milliseconds(50))
                }
            case "/fields":
                try exchange.send("HTTP/1.1 200 Endless\r\n")
                while true { try exchange.send(String(repeating: "X-Field: value\r\n", count: 1000)) }
            case "/extension":
                try exchange.startChunked()
                try exchange.send("1;")
                while true {
                    try exchange.send("x=")
                    exchange.pause(.milliseconds(50))
                }
            default:
                try exchange.startChunked()
                try exchange.send("0\r\n")
                while true { try exchange.send(String(repeating: "X-Trailer: value\r\n", count: 1000)) }
            }
        }
        let steady = SteadyClient(running.proxy)
        let before = try running.proxy.process.residentMemory()
        let patient = try await RawClient.connect(port: running.proxy.port)
        try await patient.send("GET http://api.test/body HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(try await running.proxy.get("http://api.test/head").status == 504)
        #expect(try await running.proxy.get("http://api.test/fields").status == 502)
        for target in ["extension", "trailers"] {
            let client = try await RawClient.connect(port: running.proxy.port)
            try await client.send("GET http://api.test/\(target) HTTP/1.1\r\nHost: api.test\r\n\r\n")
            let answer = String(decoding: try await client.readToEnd(), as: UTF8.self)
            #expect(!answer.hasSuffix("0\r\n\r\n"))
        }
        // Each piece came on its own, and still comes.
        _ = try await patient.read(count: 3000)
        patient.close()
        try await steady.stop()
        #expect(try running.proxy.process.peakResidentMemory() - before < 8 * Self.mebibyte)
        try await eventually("nobody drips any more") {
            running.origin.connections.filter { !$0.isOver }.count <= 2
        }
    }

    // MARK: Events

    @Test(arguments: ["Transfer-Encoding: chunked", "Connection: close"])
    func `each server-sent event is there before the next is sent`(framing: String) async throws {
        let next = DispatchSemaphore(value: 1)
        let count = 50
        let running = try await Self.proxyAndOrigin { exchange in
            try exchange.send("HTTP/1.1 200 Events\r\nContent-Type: text/event-stream\r\n\(framing)\r\n\r\n")
            for number in 0..<count {
                // The next one leaves only when the client has the last.
                next.wait()
                let event = "id: \(number)\ndata: x\n\n"
                framing.hasSuffix("chunked") ? try exchange.chunk(event) : try exchange.send(event)
            }
            if framing.hasSuffix("chunked") { try exchange.lastChunk() }
            exchange.close()
        }
        let client = try await RawClient.connect(port: running.proxy.port)
        try await client.send("GET http://api.test/events HTTP/1.1\r\nHost: api.test\r\n\r\n")
        for number in 0..<count {
            let text = try await client.read(until: "id: \(number)\ndata: x\n\n")
            #expect(!text.contains("id: \(number + 1)"))
            next.signal()
        }
        _ = try await client.read(until: "0\r\n\r\n")
        #expect(running.origin.problems.isEmpty)
    }

    // MARK: The end

    @Test func `a keep-alive connection at SIGTERM ends after its exchange, and says so`() async throws {
        let gate = Gate()
        let running = try await Self.proxyAndOrigin(proxy: "drain_timeout: 60s") { exchange in
            let count = try exchange.readBody().bodyCount
            gate.wait()
            try exchange.respond(body: "\(count)")
        }
        defer { gate.open() }
        let client = try await RawClient.connect(port: running.proxy.port)
        let upload = try await RawClient.connect(port: running.proxy.port)
        try await client.send("GET http://api.test/late HTTP/1.1\r\nHost: api.test\r\n\r\n" + Self.request)
        try await upload.send("POST http://api.test/up HTTP/1.1\r\nHost: api.test\r\nContent-Length: 10\r\n\r\nfirst")
        try await eventually("both are under way") { running.origin.requests.count == 3 }
        running.proxy.process.signal(SIGTERM)
        let port = running.proxy.port
        try await refusesConnections(port)
        try await upload.send("after")
        gate.open()
        let answer = try await client.response()
        #expect(answer.status == 200)
        #expect(answer.field("Connection") == "close")
        // The requests pipelined behind it are not begun.
        #expect(try await client.readToEnd().isEmpty)
        let uploaded = try await upload.response(to: "POST")
        #expect(uploaded.text == "10")
        #expect(uploaded.field("Connection") == "close")
        #expect(try await running.proxy.process.ended() == .exited(0))
        #expect(running.origin.requests.filter { $0.target == "/fine" }.count == 1)
    }

    @Test func `the proxy ends in drain_timeout after SIGTERM, with a crowd of every kind, with 0`() async throws {
        let running = try await Self.proxyAndOrigin(proxy: "drain_timeout: 1s") { try $0.flood(1 << 40) }
        var clients: [RawClient] = []
        for text in [
            "", "GET http://api", Self.request, "GET http://api.test/flood HTTP/1.1\r\nHost: api.test\r\n\r\n",
            "POST http://api.test/fine HTTP/1.1\r\nHost: api.test\r\nContent-Length: 10\r\n\r\nhalf",
        ] {
            for _ in 0..<10 {
                let client = try await RawClient.connect(port: running.proxy.port, receiveBuffer: 4096)
                if !text.isEmpty { try await client.send(text) }
                clients.append(client)
            }
        }
        #expect(try await running.proxy.terminate(within: .seconds(20)) == .exited(0))
        try await refusesConnections(running.proxy.port)
        withExtendedLifetime(clients) {}
    }
}
