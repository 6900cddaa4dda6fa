import CurlTransport
import Foundation
import HTTPMessage
import Reactor
import TestSupport
import Testing

@Suite(
    "whatever one upstream sends without end, the others have their turn", .stopsProxies, .serialized,
    .timeLimit(.minutes(3)))
struct FairnessTests {
    /// The promise is 50 ms, of a release build on a quiet machine. A loop that is held is held as long as the peer sends.
    private static let limit = Duration.milliseconds(500)

    private func proxy(_ upstream: EndlessUpstream) async throws -> ProxyInProcess {
        try await ProxyInProcess(proxy: "max_connections: 64", more: upstream.upstreams())
    }

    /// The median time of another client's requests while `url` is answered without end: at least 20 of them, and for
    /// 150 ms, because the flood begins when its connection stands.
    private func median(beside url: String, _ proxy: ProxyInProcess) async throws -> Duration {
        let greedy = try await proxy.connect(sending: message("GET", url))
        let reading = Task { _ = try? await greedy.countToEnd() }
        let client = try await proxy.connect()
        var times: [Duration] = []
        let begin = ContinuousClock.now
        while times.count < 20 || .now - begin < .milliseconds(150) {
            let time = try await ContinuousClock().measure {
                try await client.send(message("GET", "http://nobody.test/"))
                #expect(try await client.response(within: .seconds(20)).status == 403)
            }
            times.append(time)
        }
        greedy.close()
        await reading.value
        return times.sorted()[times.count / 2]
    }

    @Test func `an upstream that sends without end leaves others their turn, over HTTP 1 and HTTP 2`() async throws {
        let upstream = try await EndlessUpstream()
        let proxy = try await proxy(upstream)
        for url in upstream.urls() {
            #expect(try await median(beside: url, proxy) < Self.limit, "\(url)")
        }
        try await upstream.stop()
    }

    @Test(arguments: [
        "trailers", "trailer", "extension", "extensions", "interim", "fields", "field", "chunks", "blank",
    ])
    func `a token endpoint that sends without end leaves others their turn`(path: String) async throws {
        let upstream = try await EndlessUpstream()
        let loop = try EventLoop.start(name: "fair")
        defer { loop.stop() }
        let client = BufferedClient(options: PoolOptions(), loop: loop)
        var request = BufferedClient.Request(origin: Origin(scheme: .http, host: "127.0.0.1", port: upstream.port))
        request.target = "/\(path)"
        request.timeout = .seconds(1)
        let sent = request
        let answer = Task { try await client.send(sent) }
        var times: [Duration] = []
        for _ in 0..<50 {
            times.append(try await ContinuousClock().measure { try await loop.run {} })
            // Time itself: the loop's turns are looked at during the flood, not in a burst before it.
            try await Task.sleep(for: .milliseconds(4))
        }
        #expect(times.sorted()[25] < Self.limit)
        await #expect(throws: BufferedClient.Failure.self) { try await answer.value }
        try await upstream.stop()
    }
}
