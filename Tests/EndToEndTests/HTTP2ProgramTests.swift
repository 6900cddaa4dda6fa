import Foundation
import TestSupport
import Testing

@Suite("programs that speak HTTP/2, by the executable", .timeLimit(.minutes(4)))
struct HTTP2ProgramTests {
    /// Removes the proxy variables of the tests' own environment.
    private static let quiet: [String: String?] = [
        "http_proxy": nil, "https_proxy": nil, "grpc_proxy": nil, "no_proxy": nil, "NO_PROXY": nil,
        "no_grpc_proxy": nil,
    ]

    private static func origin() throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            let body = exchange.head.method == "POST" ? "\(try exchange.readBody().bodyCount)" : "hello"
            try exchange.respond(body: body)
        }
    }

    // MARK: Without TLS

    enum Way: String, CaseIterable { case baseURL, insideConnect, asProxy }

    @Test(arguments: Way.allCases)
    func `curl with prior knowledge of HTTP 2 gets its token`(way: Way) async throws {
        let origin = try Self.origin()
        let proxy = try await RunningProxy(to: origin, upstream: "listen: 127.0.0.1:0", listeners: 2)
        let target =
            switch way {
            case .baseURL: ["http://127.0.0.1:\(proxy.upstreamPort)/v1/items?x=1"]
            case .insideConnect: ["--proxytunnel", "-x", proxy.url, "http://api.test/v1/items?x=1"]
            case .asProxy: ["--connect-to", "::127.0.0.1:\(proxy.port)", "http://api.test/v1/items?x=1"]
            }
        let run = try await ChildProcess.run(
            ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "20", "-w", " %{http_version} %{http_code}"]
                + target, environment: Self.quiet)
        #expect(run.output == "hello 2 200", "\(run.transcript)")
        #expect(origin.requests.map(\.target) == ["/v1/items?x=1"])
        #expect(origin.requests[0].values("Authorization") == ["Bearer \(token)"])
        #expect(origin.requests[0].values("Host") == [origin.authority])
        #expect(origin.requests[0].values("Via") == ["2 heimdallr-proxy"])
        try await eventually("the line in the log") { proxy.log.contains(" http=2 ") }
    }

    @Test func `a body of unknown length passes in chunks`() async throws {
        let origin = try Self.origin()
        let proxy = try await RunningProxy(to: origin, upstream: "listen: 127.0.0.1:0", listeners: 2)
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
        let proxy = try await RunningProxy(to: origin, upstream: "listen: 127.0.0.1:0", listeners: 2)
        let output = try await ChildProcess.output(
            of: ["h2load", "-n", "2000", "-c", "4", "-m", "100", "http://127.0.0.1:\(proxy.upstreamPort)/"],
            within: .seconds(60))
        #expect(output.contains("2000 succeeded, 0 failed, 0 errored, 0 timeout"), "\(output)")
        #expect(origin.requests.count == 2000)
    }

    // MARK: Hostile ones

    @Test func `hostile connections end as RFC 9113 says, and others are served`() async throws {
        let origin = try Self.origin()
        let proxy = try await RunningProxy(to: origin)
        let run = try await ChildProcess.run(
            [try Repository.python(), fixture("http2_hostile.py"), "127.0.0.1:\(proxy.port)"], within: .seconds(200))
        #expect(run.output.hasSuffix(" cases, 0 wrong\n"), "\(run.transcript)")
        #expect(proxy.process.ending == nil)
        withExtendedLifetime(origin) {}
    }

    @Test func `answers that a client does not take stay few in memory`() async throws {
        let large = String(repeating: "0123456789abcdef", count: 500_000)
        let origin = try RecordingOrigin { try $0.respond(body: large) }
        let proxy = try await RunningProxy(to: origin, proxy: "max_connections: 64", upstream: "max_connections: 256")
        let before = try proxy.process.residentMemory()
        let client = try ChildProcess(
            [try Repository.python(), fixture("http2_closed_windows.py"), "127.0.0.1:\(proxy.port)"])
        defer { client.kill() }
        try await eventually("all are asked for", within: .seconds(60)) { origin.requests.count >= 100 }
        try await eventually("their heads", within: .seconds(60)) { client.output.contains("100 heads") }
        // 800 MB wait behind the proxy.
        let grown = try proxy.process.residentMemory() - before
        #expect(grown < 64 << 20, "\(grown)")
        let other = try await proxy.get("http://api.test/")
        #expect(other.status == 200)
    }

    // MARK: In TLS

    private func interceptingProxy(_ upstreams: [String]) async throws -> (RunningProxy, roots: String) {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                proxy: "intercept: true", clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
                upstreams: upstreams
            ).text, files: ["secret": ProxyConfiguration.secret], tokenEndpoint: endpoint)
        let roots = try await eventually("the files of trust") { proxy.trustFolder } + "/roots.pem"
        return (proxy, roots)
    }

    @Test func `HTTP 2 is offered by ALPN alone, and another host than the connection's is refused`() async throws {
        let origin = try Self.origin()
        let (proxy, roots) = try await interceptingProxy([
            ProxyConfiguration.upstream("api.test", url: origin.url),
            ProxyConfiguration.upstream("two.test", url: origin.url),
        ])
        let run = try await ChildProcess.run([
            try Repository.python(), fixture("http2_inside_tls.py"), "127.0.0.1:\(proxy.port)", "api.test", roots,
            "api.test", "two.test", "unlisted.test", "api.test:443",
        ])
        #expect(
            run.output == "h2\napi.test 200\ntwo.test 421\nunlisted.test 403\napi.test:443 200\n", "\(run.transcript)")
        #expect(Set(origin.requests.map(\.target)) == ["/0", "/3"])
        #expect(origin.requests.allSatisfy { $0.values("Via") == ["2 heimdallr-proxy"] })
        #expect(origin.requests.allSatisfy { $0.values("Authorization") == ["Bearer \(token)"] })
    }

    @Test(arguments: [false, true]) func `grpcio's channels get their token by exec alone`(tls: Bool) async throws {
        let server = try ChildProcess([try Repository.python(), Repository.fixture("grpc_server.py")])
        let port = try await server.printedPort()
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                listen: try freePort(), proxy: tls ? "intercept: true" : "",
                clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
                upstreams: [ProxyConfiguration.upstream("calls.test", url: "http://127.0.0.1:\(port)")]
            ).text, files: ["secret": ProxyConfiguration.secret], tokenEndpoint: endpoint)
        let run = try await RunningProxy.run(
            [
                "exec", "--config", proxy.directory.path(of: "config.yaml"), "--", try Repository.python(),
                fixture("grpc_call.py"), tls ? "tls" : "plain", tls ? "calls.test:443" : "calls.test:80",
            ], environment: Self.quiet)
        #expect(run.output == "hello Bearer \(token)\n", "\(run.transcript) \(proxy.log)")
    }

    @Test func `nghttp gets its token at an https base URL`() async throws {
        let origin = try Self.origin()
        let pair = try await PrivateCA().server()
        let listener =
            "listen: {address: 127.0.0.1:0, tls: {cert_file: \(pair.certificateFile), "
            + "key_file: \(pair.keyFile)}}"
        let proxy = try await RunningProxy(to: origin, upstream: listener, listeners: 2)
        let run = try await ChildProcess.run(["nghttp", "-y", "https://127.0.0.1:\(proxy.upstreamPort)/x"])
        #expect(run.output == "hello", "\(run.transcript) \(proxy.log)")
        #expect(origin.requests.map(\.target) == ["/x"])
        #expect(origin.requests.allSatisfy { $0.values("Via") == ["2 heimdallr-proxy"] })
    }
}
