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
        ])
    func `twenty of twenty probes are answered while four clients connect and leave without a pause`(bytes: String)
        async throws
    {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        // One who has sent a whole request leaves in order.
        let resets = !bytes.hasSuffix("\r\n\r\n")
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
        // Not the slowest: a client whose SYN finds the queue full tries again after a second, or three.
        #expect(times[times.count * 3 / 4] < .seconds(1), "\(bytes) \(times)")
    }

    @Test func `livez is answered beside upstreams that send without end, in less than 64 MiB`() async throws {
        let upstream = try await EndlessUpstream()
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]), more: upstream.upstreams(indent: 2))
        try await admin.ready()
        let before = try admin.proxy.process.residentMemory()
        for url in upstream.urls() {
            let greedy = try await RawClient.connect(port: admin.proxy.port)
            try await greedy.send("GET \(url) HTTP/1.1\r\nHost: x\r\n\r\n")
            let reading = Task { _ = try? await greedy.countToEnd() }
            // The flood begins when its connection stands.
            let begin = ContinuousClock.now
            while .now - begin < .milliseconds(150) { #expect(try await admin.get("/livez").status == 200) }
            greedy.close()
            await reading.value
        }
        #expect(try admin.proxy.process.peakResidentMemory() - before < 64 << 20)
        try await upstream.stop()
    }
}
