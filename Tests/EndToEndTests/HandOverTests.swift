import Foundation
import TestSupport
import Testing

@Suite("a proxy is replaced by another one without losing a request", .timeLimit(.minutes(4)))
struct HandOverTests {
    /// The program that counts 100,000 requests does it with some thousands, too.
    @Test(arguments: ["activation", "hand-over"])
    func `under load, with two configurations`(way: String) async throws {
        let run = try await ChildProcess.run(
            [
                "python3", "\(Repository.root)/Benchmarks/upgrade", "--binary", try Repository.executable(), "--way",
                way,
                "--requests", "1000", "--seconds", "4", "--pause", "0.3", "--connections", "16", "--threads", "2",
            ], within: .seconds(60))
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output.contains(", 0 failed, "), "\(run.transcript)")
    }

    private static func configuration(
        _ port: UInt16, _ origin: RecordingOrigin, _ endpoint: TokenEndpoint, _ folder: String
    )
        -> ProxyConfiguration
    {
        ProxyConfiguration(
            tokenEndpoint: endpoint.url,
            proxy: "listen: [\"127.0.0.1:\(port)\", \"unix:\(folder)/p.sock\"]\nreuse_port: true\ndrain_timeout: 20s",
            admin: "listen: 127.0.0.1:\(port + 1)\nsocket: \(folder)/a.sock",
            upstreams: ProxyConfiguration.upstream(url: origin.url))
    }

    @Test func `the new one has the sockets, the old one's requests end as they began`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/slow" { gate.wait() }
            try exchange.respond(body: "ok")
        }
        let (endpoint, folder) = (try TokenEndpoint.plain(), try TemporaryDirectory())
        let port = try freePort()
        let configuration = Self.configuration(port, origin, endpoint, folder.path)
        let old = try await RunningProxy(configuration, listeners: 2)
        let kept = try await RawClient.connect(port: port)
        let message = "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n"
        try await kept.send(message)
        #expect(try await kept.response().field("Connection") == nil)
        let slow = try await RawClient.connect(port: port)
        try await slow.send(message.replacing("test/ ", with: "test/slow "))
        try await eventually("it is under way") { origin.requests.count == 2 }

        let new = try await RunningProxy(configuration, listeners: 2)
        try await eventually("it says so") {
            new.log.contains("another process listens at the same addresses, too")
        }
        old.process.signal(SIGTERM)
        // Between requests nothing is cut: an answer says that it is the last.
        var isLast = false
        for _ in 0..<2000 where !isLast {
            try await kept.send(message)
            let answer = try await kept.response()
            #expect(answer.status == 200)
            isLast = answer.field("Connection") == "close"
        }
        #expect(isLast)
        for _ in 0..<50 { #expect(try await new.get("http://api.test/").status == 200) }
        gate.open()
        #expect(try await slow.response().status == 200)
        #expect(try await old.process.ended() == .exited(0))
        // Its files are the new one's.
        let output = try await ChildProcess.output(
            of: ["curl", "-sS", "--unix-socket", "\(folder.path)/p.sock", "http://api.test/"])
        #expect(output == "ok")
        let status = try await RunningProxy.run(["status", "--exit-zero", "--socket", "\(folder.path)/a.sock"])
        #expect(status.ending == .exited(0), "\(status.transcript)")
        #expect(try await new.terminate() == .exited(0))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func `an answer that began before the stop does not say that it is the last, and is not`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let origin = try RecordingOrigin { exchange in
            try exchange.startChunked()
            try exchange.chunk("first")
            if exchange.head.target == "/slow" { gate.wait() }
            try exchange.lastChunk()
        }
        let proxy = try await RunningProxy(to: origin, proxy: "drain_timeout: 20s")
        let client = try await RawClient.connect(port: proxy.port)
        let message = "GET http://api.test/slow HTTP/1.1\r\nHost: api.test\r\n\r\n"
        try await client.send(message)
        #expect(try await !client.read(until: "first").contains("Connection: close"))
        proxy.process.signal(SIGTERM)
        let port = proxy.port
        try await eventually("it accepts nobody") { (try? await RawClient.connect(port: port)) == nil }
        gate.open()
        _ = try await client.read(until: "0\r\n\r\n")
        try await client.send(message)
        let last = try await client.response()
        #expect(last.status == 200)
        #expect(last.field("Connection") == "close")
        #expect(try await client.readToEnd().isEmpty)
        #expect(try await proxy.process.ended() == .exited(0))
    }

    @Test func `without reuse_port a second start is an error`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let first = try await RunningProxy(to: origin)
        for line in ["", "reuse_port: true"] {
            await #expect(throws: (any Error).self) {
                try await RunningProxy(to: origin, proxy: "listen: 127.0.0.1:\(first.port)\n\(line)")
            }
        }
        #expect(try await first.get("http://api.test/").status == 200)
    }

    @Test func `with drain_delay it is not ready first, and serves on meanwhile`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let proxy = try await RunningProxy(to: origin, proxy: "drain_delay: 2s", admin: "")
        let admin = try await proxy.administration()
        @Sendable func ready() async throws -> Int {
            try await RawClient.exchange(
                port: admin.port, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            ).status
        }
        try await eventually("it is ready") { try await ready() == 200 }
        let begin = ContinuousClock.now
        proxy.process.signal(SIGTERM)
        try await eventually("it is not ready") { try await ready() == 503 }
        let answer = try await proxy.get("http://api.test/")
        #expect(answer.status == 200)
        #expect(answer.field("Connection") == "close")
        #expect(try await proxy.process.ended() == .exited(0))
        #expect(ContinuousClock.now - begin > .seconds(2))
        let again = try await RunningProxy(to: origin, proxy: "drain_delay: 10m")
        again.process.signal(SIGTERM)
        try await eventually("it says goodbye") {
            try await again.get("http://api.test/").field("Connection") == "close"
        }
        again.process.signal(SIGTERM)
        #expect(try await again.process.ended(within: .seconds(20)) == .exited(0))
    }
}
