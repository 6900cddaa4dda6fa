import Glibc
import TestSupport
import Testing

@Suite("a proxy is replaced by another one without losing a request", .timeLimit(.minutes(4)))
struct HandOverTests {
    /// The program that counts 100,000 requests also works with some thousands.
    @Test func `a proxy that is replaced under load, with two configurations, loses no request`() async throws {
        let run = try await ChildProcess.run(
            [
                "python3", "\(Repository.root)/Benchmarks/upgrade", "--binary", try Repository.executable(),
                "--requests", "1000", "--seconds", "4", "--pause", "0.3", "--connections", "16", "--threads", "2",
            ], within: .seconds(60))
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output.contains(", 0 failed, "), "\(run.transcript)")
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

    @Test func `with drain_delay the proxy is not ready first, and serves on meanwhile`() async throws {
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
