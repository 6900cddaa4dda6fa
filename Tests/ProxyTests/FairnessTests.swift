import CurlTransport
import Foundation
import Reactor
import TestSupport
import Testing

@Suite(
    "whatever one upstream sends without end, the others have their turn", .grounds, .serialized,
    .timeLimit(.minutes(3)))
struct FairnessTests {
    private static let plain = [
        "chunks", "body", "close", "trailers", "trailer", "extension", "extensions", "interim", "interims", "fields",
        "field", "reason", "blank", "refused",
    ]
    /// In the order of their ports.
    private static let frames = [
        "continuation", "data", "early-ping", "early-priority", "early-window", "empty-data", "interim", "large-data",
        "padding", "ping", "priority", "settings", "trailers", "unknown", "window", "window-of-stream",
    ]
    /// The promise is 50 ms, of a release build on a quiet machine. A loop that is held is held for seconds.
    private static let limit = Duration.seconds(1)

    private struct Stage {
        let ground: Ground
        let upstream: ChildProcess
        let port: UInt16
        let authority: PrivateCA
    }

    private func stage() async throws -> Stage {
        let authority = try await PrivateCA()
        let certificate = try await authority.server()
        let upstream = try ChildProcess([
            "/usr/bin/python3", Repository.fixture("endless_upstream.py"), certificate.certificateFile,
            certificate.keyFile,
        ])
        let ports = try await eventually("the upstream says its ports") {
            upstream.output.hasSuffix("\n")
                ? upstream.output.split(whereSeparator: \.isWhitespace).map(String.init) : nil
        }
        var more = """
            - host: plain.test
              url: http://127.0.0.1:\(ports[0])
              client: api
              allow_plaintext: true

            """
        for (name, port) in zip(Self.frames, ports.dropFirst()) {
            more += """
                - host: \(name).h2.test
                  url: https://localhost:\(port)
                  client: api
                  http2: true
                  tls: {ca_file: \(authority.certificateFile)}

                """
        }
        return Stage(
            ground: try await Ground(proxy: "max_connections: 64", more: more), upstream: upstream,
            port: try #require(UInt16(ports[0])), authority: authority)
    }

    /// How long requests of somebody else take, the longest but for one in a hundred, while that one is answered.
    private func worst(beside url: String, _ ground: Ground) async throws -> Duration {
        var greedy: RawClient? = try await ground.connect()
        try await greedy?.send(message("GET", url))
        let reading = Task { [greedy] in _ = try? await greedy?.countToEnd(within: .milliseconds(1500)) }
        defer { greedy?.resetOnClose() }
        try await Task.sleep(for: .milliseconds(200))
        let client = try await ground.connect()
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
        let stage = try await stage()
        let before = Self.memory()
        for url in Self.plain.map({ "http://plain.test/\($0)" }) + Self.frames.map({ "http://\($0).h2.test/" }) {
            let worst = try await worst(beside: url, stage.ground)
            #expect(worst < Self.limit, "\(url)")
        }
        #expect(Self.memory() - before < 128 << 20)
        try await stage.upstream.stop()
        withExtendedLifetime(stage.authority) {}
    }

    @Test(arguments: [
        "trailers", "trailer", "extension", "extensions", "interim", "fields", "field", "chunks", "blank",
    ])
    func `from a token endpoint`(path: String) async throws {
        let stage = try await stage()
        let before = Self.memory()
        let loop = try EventLoop.start(name: "fair")
        defer { loop.stop() }
        let client = BufferedClient(options: PoolOptions(), loop: loop)
        var request = BufferedClient.Request(origin: Origin(scheme: .http, host: "127.0.0.1", port: stage.port))
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
        try await stage.upstream.stop()
        withExtendedLifetime(stage.authority) {}
    }
}
