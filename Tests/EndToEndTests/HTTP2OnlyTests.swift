import TestSupport
import Testing

@Suite("a server that speaks HTTP/2 only is told so, with the key to set", .timeLimit(.minutes(2)))
struct HTTP2OnlyTests {
    enum Kind: String, CaseIterable, Sendable {
        case tls, plain

        /// Value of the key `http2` for such a server.
        var key: String { self == .tls ? "http2: true" : "http2: prior-knowledge" }
        func url(_ server: TLSServerProcess) -> String {
            self == .tls ? "https://localhost:\(server.port)" : "http://127.0.0.1:\(server.port)"
        }
        func lines(_ server: TLSServerProcess) -> String {
            self == .tls ? "tls: {ca_file: \(server.authority.certificateFile)}" : ""
        }
    }

    private func server(_ kind: Kind, _ more: String...) async throws -> TLSServerProcess {
        try await TLSServerProcess(["node", fixture("http2_only.js")], [kind.rawValue] + more)
    }

    @Test(arguments: Kind.allCases)
    func `with the key, doctor agrees also where the server accepts no HEAD, as servers of gRPC do`(kind: Kind)
        async throws
    {
        let server = try await server(kind, "calls")
        let proxy = try await RunningProxy(configuration(kind, server, client: kind.key, upstream: kind.key))
        let doctor = try await doctor(proxy)
        #expect(doctor.ending == .exited(0), "\(doctor.transcript)")
        #expect(doctor.output.contains("speaks HTTP/2, and accepts no HEAD"), "\(doctor.output)")
    }

    private func configuration(
        _ kind: Kind, _ server: TLSServerProcess, client: String = "", upstream: String = ""
    ) -> ProxyConfiguration {
        ProxyConfiguration(
            tokenEndpoint: kind.url(server) + "/token", client: "\(kind.lines(server))\n\(client)",
            admin: "",
            upstreams: ProxyConfiguration.upstream(url: kind.url(server), "\(kind.lines(server))\n\(upstream)"))
    }

    private func doctor(_ proxy: RunningProxy) async throws -> ChildProcess {
        try await RunningProxy.run(["doctor", "--config", proxy.directory.path(of: "config.yaml")])
    }

    private func status(_ proxy: RunningProxy) async throws -> ChildProcess {
        try await RunningProxy.run(["status", "--socket", try await proxy.administration().socket])
    }

    @Test(arguments: Kind.allCases)
    func `with http2 set, tokens and requests go by HTTP 2, and doctor agrees`(kind: Kind) async throws {
        let server = try await server(kind)
        let configuration = configuration(kind, server, client: kind.key, upstream: kind.key)
        let proxy = try await RunningProxy(configuration)
        #expect(try await proxy.get("http://api.test/x").text == "ok")
        #expect(server.output.contains("POST /token HTTP/2.0 grant_type=client_credentials"), "\(server.output)")
        #expect(server.output.contains("GET /x HTTP/2.0"))
        let doctor = try await doctor(proxy)
        #expect(doctor.ending == .exited(0), "\(doctor.transcript)")
        #expect(!doctor.output.contains("FAIL"))
    }

    @Test(arguments: Kind.allCases)
    func `without http2, the answer, the log and doctor name it for an upstream`(kind: Kind) async throws {
        let server = try await server(kind)
        let proxy = try await RunningProxy(configuration(kind, server, client: kind.key))
        let answer = try await proxy.get("http://api.test/x")
        #expect(answer.status == 502)
        #expect(answer.reason.contains("speaks HTTP/2 only: set `\(kind.key)`"), "\(answer.reason)")
        #expect(answer.text.contains("set `\(kind.key)` at the upstream"), "\(answer.text)")
        try await eventually("the log says so") { proxy.log.contains("set `\(kind.key)` at the upstream") }
        let doctor = try await doctor(proxy)
        #expect(doctor.output.contains("what to do: set \(kind.key) at the upstream"), "\(doctor.transcript)")
        #expect(!doctor.output.contains("ca_file"), "\(doctor.output)")
    }

    @Test(arguments: Kind.allCases)
    func `without http2, status and doctor name it for a client`(kind: Kind) async throws {
        let server = try await server(kind)
        let proxy = try await RunningProxy(configuration(kind, server, upstream: kind.key))
        #expect(try await proxy.get("http://api.test/x").status == 503)
        try await eventually("status says so") {
            try await status(proxy).output.contains("set \(kind.key) at the client")
        }
        let doctor = try await doctor(proxy)
        #expect(doctor.output.contains("set \(kind.key) at the client"), "\(doctor.transcript)")
    }
}
