import Foundation
import TestSupport
import Testing

@Suite("programs that speak HTTP/2", .timeLimit(.minutes(3)))
struct HTTP2ProgramTests {
    private static func proxy(to origin: RecordingOrigin) async throws -> RunningProxy {
        try await RunningProxy(to: origin, upstream: "listen: 127.0.0.1:0", listeners: 2)
    }

    private static func origin() throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            let body = exchange.head.method == "POST" ? "\(try exchange.readBody().bodyCount)" : "hello"
            try exchange.respond(body: body)
        }
    }

    enum Way: String, CaseIterable { case baseURL, insideConnect, asProxy }

    @Test(arguments: Way.allCases)
    func `curl gets its token with prior knowledge`(way: Way) async throws {
        let origin = try Self.origin()
        let proxy = try await Self.proxy(to: origin)
        let target =
            switch way {
            case .baseURL: ["http://127.0.0.1:\(proxy.upstreamPort)/v1/items?x=1"]
            case .insideConnect: ["--proxytunnel", "-x", proxy.url, "http://api.test/v1/items?x=1"]
            case .asProxy: ["--connect-to", "::127.0.0.1:\(proxy.port)", "http://api.test/v1/items?x=1"]
            }
        let output = try await ChildProcess.output(
            of: ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "20", "-w", " %{http_version} %{http_code}"]
                + target, within: .seconds(30))
        #expect(output == "hello 2 200")
        #expect(origin.requests.map(\.target) == ["/v1/items?x=1"])
        #expect(origin.requests[0].values("Authorization") == ["Bearer \(token)"])
        #expect(origin.requests[0].values("Host") == [origin.authority])
        #expect(origin.requests[0].values("Via") == ["2 heimdallr-proxy"])
    }

    @Test func `a body of unknown length passes in chunks`() async throws {
        let origin = try Self.origin()
        let proxy = try await Self.proxy(to: origin)
        let output = try await ChildProcess.output(
            of: [
                "sh", "-c",
                "head -c 300000 /dev/zero | curl -sS --http2-prior-knowledge --max-time 20 -T - -X POST "
                    + "http://127.0.0.1:\(proxy.upstreamPort)/",
            ], within: .seconds(30))
        #expect(output == "300000")
        #expect(origin.requests[0].framing == .chunked)
    }

    @Test func `h2load's hundred streams on each connection are all answered`() async throws {
        let origin = try Self.origin()
        let proxy = try await Self.proxy(to: origin)
        let output = try await ChildProcess.output(
            of: ["h2load", "-n", "2000", "-c", "4", "-m", "100", "http://127.0.0.1:\(proxy.upstreamPort)/"],
            within: .seconds(60))
        #expect(output.contains("2000 succeeded, 0 failed, 0 errored, 0 timeout"), "\(output)")
    }

    @Test func `each hostile connection is ended, and others are served`() async throws {
        let origin = try Self.origin()
        let proxy = try await Self.proxy(to: origin)
        let output = try await ChildProcess.output(
            of: [try Repository.python(), fixture("http2_hostile.py"), "127.0.0.1:\(proxy.upstreamPort)"],
            within: .seconds(150))
        let lines = output.split(separator: "\n").map(String.init)
        #expect(lines.count > 55)
        for line in lines {
            #expect(!line.hasPrefix("behind it"), "\(output)")
            #expect(!line.hasSuffix("status 200"))
        }
        for line in lines where line.hasPrefix("10.5 ") && !line.contains("many streams") {
            #expect(line.hasSuffix("goaway 11") || line.hasSuffix("closed"))
        }
    }
}
