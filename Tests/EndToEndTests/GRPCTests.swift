import TestSupport
import Testing

@Suite("gRPC, by grpcio as it comes", .timeLimit(.minutes(3)))
struct GRPCTests {
    /// A server of grpcio, and the proxy in front of it: as `api.test`, and at a base URL.
    struct ServerAndProxy: Sendable {
        let server: ChildProcess
        let proxy: RunningProxy
        /// Keeps its files.
        private let secured: TLSServerProcess?

        init(
            tls: Bool = false, refusing refused: [String] = [], upstream: String = "", proxy lines: String = "",
            admin: String? = nil, endpoint: TokenEndpoint? = nil
        ) async throws {
            let command = [try Repository.python(), fixture("grpc_server.py")]
            let options = refused.flatMap { ["--refuse", $0] }
            var (url, more) = ("", "listen: 127.0.0.1:0\n")
            if tls {
                let secured = try await TLSServerProcess(command, options)
                (server, self.secured) = (secured.process, secured)
                url = "https://localhost:\(secured.port)"
                more += "tls: {ca_file: \(secured.authority.certificateFile)}\n"
            } else {
                (server, secured) = (try ChildProcess(command + options), nil)
                url = "http://127.0.0.1:\(try await server.printedPort())"
            }
            proxy = try await RunningProxy(
                to: url, proxy: lines, upstream: more + upstream, admin: admin, tokenEndpoint: endpoint, listeners: 2)
        }

        /// Output of the client.
        func call(_ cases: [String], inConnect: Bool = false, target: String? = nil) async throws -> String {
            let own = inConnect ? "api.test:80" : "127.0.0.1:\(proxy.upstreamPort)"
            return try await ChildProcess.output(
                of: [try Repository.python(), fixture("grpc_client.py"), target ?? own] + cases,
                environment: [
                    "http_proxy": inConnect ? proxy.url : nil, "https_proxy": nil, "grpc_proxy": nil, "no_proxy": nil,
                ], within: .seconds(120))
        }
    }

    private static let cases = [
        "unary", "metadata", "server_streaming", "client_streaming", "chat", "large", "compression", "statuses",
        "early_answer", "deadline", "cancellation", "unimplemented", "health", "reflection", "keepalive", "crowd",
    ]

    @Test(arguments: [true, false], [true, false])
    func `all kinds of calls pass, at a base URL and inside CONNECT, to TLS and to plain HTTP2`(
        tls: Bool, inConnect: Bool
    ) async throws {
        let running = try await ServerAndProxy(tls: tls)
        let output = try await running.call(Self.cases, inConnect: inConnect)
        #expect(output == Self.cases.map { "ok \($0)\n" }.joined())
        #expect(running.proxy.tokenRequests == 1)
        // A deadline and a cancellation reach the server.
        try await eventually("the server hears of the deadline") { running.server.output.contains("hang cancelled\n") }
        try await eventually("the log has the statuses") {
            let log = running.proxy.log
            return [0, 3, 7, 12, 14].allSatisfy { log.contains(" grpc_status=\($0) ") }
        }
    }

    @Test func `a refused token is replaced, and the call goes out once more`() async throws {
        let endpoint = try TokenEndpoint { _, number in .token("T\(number + 1)") }
        let running = try await ServerAndProxy(refusing: ["T1"], admin: "listen: 127.0.0.1:0", endpoint: endpoint)
        #expect(try await running.call(["token"]) == "Bearer T2\nok token\n")
        #expect(running.server.output.contains("refused T1\n"))
        #expect(endpoint.requests.count == 2)
        let admin = try await running.proxy.administration()
        let metrics = try await RawClient.exchange(
            port: admin.port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ).text
        #expect(metrics.contains(#"heimdallr_grpc_calls_total{upstream="api.test",grpc_status="0"} 1"#), "\(metrics)")
        #expect(metrics.contains(#"heimdallr_injections_total{client="api",result="replayed"} 1"#))
    }

    @Test func `a token that ends within a stream is replaced for the next call`() async throws {
        let endpoint = try TokenEndpoint { _, number in .token("T\(number + 1)") }
        let running = try await ServerAndProxy(endpoint: endpoint)
        #expect(try await running.call(["expiring"]) == "[b'one'] UNAUTHENTICATED\nBearer T2\nok expiring\n")
    }

    @Test func `a gRPC stream outlives its token`() async throws {
        let endpoint = try TokenEndpoint { _, number in .token("T\(number + 1)", expiresIn: "2") }
        let running = try await ServerAndProxy(endpoint: endpoint)
        #expect(try await running.call(["long_chat"]) == "ok long_chat\n")
        #expect(endpoint.requests.count >= 2)
    }

    // MARK: Other libraries

    @Test(arguments: [true, false])
    func `Go's library calls over TLS and over plain HTTP2`(tls: Bool) async throws {
        let running = try await ServerAndProxy(tls: tls)
        let output = try await ChildProcess.output(
            of: ["go", "run", fixture("grpc_client.go"), "127.0.0.1:\(running.proxy.upstreamPort)"],
            // The distribution's sources.
            environment: ["GO111MODULE": "off", "GOPATH": "/usr/share/gocode"], within: .seconds(120))
        let cases = ["unary", "chat", "statuses", "deadline", "cancellation", "crowd"]
        #expect(output == cases.map { "ok \($0)\n" }.joined())
    }

    private static let grpclibCases = ["unary", "count", "chat", "status", "deadline", "crowd"].map { "ok \($0)\n" }

    @Test func `grpclib calls a server of grpcio`() async throws {
        let running = try await ServerAndProxy()
        #expect(try await Self.grpclib(by: running.proxy) == Self.grpclibCases.joined())
        try await eventually("the server hears of the deadline") { running.server.output.contains("hang cancelled\n") }
    }

    @Test func `grpclib calls a server of grpclib`() async throws {
        let server = try ChildProcess([try Repository.python(), fixture("grpclib_calls.py"), "serve"])
        let proxy = try await RunningProxy(
            to: "http://127.0.0.1:\(try await server.printedPort())", upstream: "listen: 127.0.0.1:0", listeners: 2)
        #expect(try await Self.grpclib(by: proxy) == Self.grpclibCases.joined())
        try await eventually("the server hears of the deadline") { server.output.contains("hang cancelled\n") }
    }

    private static func grpclib(by proxy: RunningProxy) async throws -> String {
        try await ChildProcess.output(of: [
            try Repository.python(), fixture("grpclib_calls.py"), "call", "127.0.0.1", "\(proxy.upstreamPort)",
        ])
    }

    // MARK: Our own problems

    @Test func `gRPC callers learn of a dead upstream, an unlisted host and a needed sign-in`() async throws {
        let proxy = try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            admin: {listen: 127.0.0.1:0}
            clients:
              person:
                grant_type: authorization_code
                authorization_endpoint: http://127.0.0.1:1/authorize
                token_endpoint: http://127.0.0.1:1/token
                client_id: x
                allow_plaintext: true
            upstreams:
              - {host: down.test, url: "http://127.0.0.1:\(try freePort())", listen: 127.0.0.1:0}
              - {host: person.test, url: "http://127.0.0.1:1", client: person, allow_plaintext: true, listen: 127.0.0.1:0}
            """, listeners: 3)
        let admin = try await proxy.administration()
        func call(_ target: String) async throws -> String {
            try await ChildProcess.output(
                of: [try Repository.python(), fixture("grpc_client.py"), target, "error"],
                environment: ["http_proxy": nil, "https_proxy": nil, "grpc_proxy": nil, "no_proxy": nil])
        }
        let down = try await call("127.0.0.1:\(proxy.listeners[1].port)")
        #expect(down.hasPrefix("UNAVAILABLE: The upstream refuses connections. "), "\(down)")
        let person = try await call("127.0.0.1:\(proxy.listeners[2].port)")
        #expect(person.hasPrefix("UNAUTHENTICATED: A sign-in is needed. "), "\(person)")
        #expect(person.contains("http://127.0.0.1:\(admin.port)/"), "\(person)")
        let unlisted = try await call("127.0.0.1:\(proxy.port)=nobody.test")
        #expect(unlisted.hasPrefix("PERMISSION_DENIED: No upstream for this host. "), "\(unlisted)")
    }
}
