import CurlTransport
import Foundation
import Reactor
import TestSupport
import Testing

@Suite(
    "whatever one upstream sends without end, the others have their turn", .stopsProxies, .serialized,
    .timeLimit(.minutes(3)))
struct FairnessTests {
    /// The promise is 50 ms, of a release build on a quiet machine. A loop that is held is held for seconds.
    private static let limit = Duration.seconds(1)

    private func proxy(_ upstream: EndlessUpstream) async throws -> ProxyInProcess {
        try await ProxyInProcess(proxy: "max_connections: 64", more: upstream.upstreams())
    }

    /// How long requests of somebody else take, the longest but for one in a hundred, while that one is answered.
    private func worst(beside url: String, _ proxy: ProxyInProcess) async throws -> Duration {
        var greedy: RawClient? = try await proxy.connect()
        try await greedy?.send(message("GET", url))
        let reading = Task { [greedy] in _ = try? await greedy?.countToEnd(within: .milliseconds(1500)) }
        defer { greedy?.resetOnClose() }
        try await Task.sleep(for: .milliseconds(200))
        let client = try await proxy.connect()
        var times: [Duration] = []
        let end = ContinuousClock.now + .seconds(1)
        while ContinuousClock.now < end {
            let time = try await ContinuousClock().measure {
                try await client.send(message("GET", "http://nobody.test/"))
                #expect(try await client.response(within: .seconds(20)).status == 403)
            }
            times.append(time)
        }
        await reading.value
        greedy?.resetOnClose()
        greedy = nil
        times.sort()
        return times[times.count - 1 - times.count / 100]
    }

    private static func memory() -> Int {
        let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
        return pages.flatMap { Int($0[1]) }.map { $0 * 4096 } ?? 0
    }

    @Test func `over HTTP 1 and HTTP 2`() async throws {
        let upstream = try await EndlessUpstream()
        let proxy = try await proxy(upstream)
        let before = Self.memory()
        for url in upstream.urls() {
            let worst = try await worst(beside: url, proxy)
            #expect(worst < Self.limit, "\(url)")
        }
        #expect(Self.memory() - before < 128 << 20)
        try await upstream.stop()
    }

    @Test(arguments: [
        "trailers", "trailer", "extension", "extensions", "interim", "fields", "field", "chunks", "blank",
    ])
    func `from a token endpoint`(path: String) async throws {
        let upstream = try await EndlessUpstream()
        let before = Self.memory()
        let loop = try EventLoop.start(name: "fair")
        defer { loop.stop() }
        let client = BufferedClient(options: PoolOptions(), loop: loop)
        var request = BufferedClient.Request(origin: Origin(scheme: .http, host: "127.0.0.1", port: upstream.port))
        request.target = "/\(path)"
        request.timeout = .seconds(2)
        let sent = request
        let answer = Task { try await client.send(sent) }
        var worst = Duration.zero
        for _ in 0..<200 {
            let time = try await ContinuousClock().measure { try await loop.run {} }
            worst = max(worst, time)
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(worst < Self.limit)
        await #expect(throws: BufferedClient.Failure.self) { try await answer.value }
        #expect(Self.memory() - before < 64 << 20)
        try await upstream.stop()
    }
}
