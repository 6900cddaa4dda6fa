import Foundation
import TestSupport
import Testing

@testable import Administration

@Suite("probes beside those who do their worst", .serialized, .timeLimit(.minutes(3)))
struct ReconnectTests {
    @Test(
        arguments: [
            "", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /status HTTP/1.1\r\nHo",
        ], [false, true])
    func `twenty of twenty are answered while four connect and leave without a pause`(bytes: String, resets: Bool)
        async throws
    {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        let storm = try ChildProcess(
            [
                "/usr/bin/python3", Repository.fixture("reconnects.py"), "\(admin.adminPort)", "4",
                resets ? "reset" : "close",
            ]
                + (bytes.isEmpty ? [] : [bytes.replacing("\r", with: "\\r").replacing("\n", with: "\\n")]))
        try await eventually("it blows") { storm.output.split(separator: "\n").last.flatMap { Int($0) } ?? 0 > 0 }
        var times: [Duration] = []
        for _ in 0..<20 {
            let begin = ContinuousClock.now
            #expect(try await admin.get("/livez").status == 200)
            times.append(begin.duration(to: .now))
        }
        try await storm.stop()
        times.sort()
        #expect(times[times.count / 2] < .milliseconds(500), "\(bytes) \(times)")
        // A client whose SYN finds the queue full tries again after a second: the kernel's time, not ours.
        #expect(times[times.count * 3 / 4] < .seconds(1), "\(bytes) \(times)")
        #expect(times[times.count - 1] < .seconds(3), "\(bytes) \(times)")
    }

    private static let floods = [
        "chunks", "body", "trailers", "extension", "interims", "fields", "field", "blank",
    ]

    @Test func `livez beside upstreams that send without end`() async throws {
        let upstream = try await EndlessUpstream()
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]), more: upstream.upstreams(indent: 2))
        try await admin.ready()
        for url in upstream.urls(plain: Self.floods) {
            let greedy = try await RawClient.connect(port: admin.proxy.port)
            try await greedy.send("GET \(url) HTTP/1.1\r\nHost: x\r\n\r\n")
            let reading = Task { _ = try? await greedy.countToEnd(within: .milliseconds(900)) }
            try await Task.sleep(for: .milliseconds(100))
            var worst = Duration.zero
            for _ in 0..<10 {
                let begin = ContinuousClock.now
                #expect(try await admin.get("/livez").status == 200)
                worst = max(worst, begin.duration(to: .now))
            }
            #expect(worst < .seconds(1), "\(url)")
            await reading.value
            greedy.resetOnClose()
        }
        try await upstream.stop()
    }
}
