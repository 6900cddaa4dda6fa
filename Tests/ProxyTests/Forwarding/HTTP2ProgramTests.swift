import Proxy
import TestSupport
import Testing

@Suite("Programs that speak HTTP/2", .stopsProxies, .timeLimit(.minutes(1)))
struct HTTP2ProgramTests {
    /// Runs curl with HTTP/2 from the first byte, as its base URL or inside CONNECT.
    private func curl(
        _ proxy: ProxyInProcess, inside: Bool = false, host: String = "api.test", _ arguments: [String]
    ) async throws -> ChildProcess {
        let way =
            inside
            ? ["-p", "-x", "http://127.0.0.1:\(proxy.port)"] : ["--connect-to", "\(host):80:127.0.0.1:\(proxy.port)"]
        return try await ChildProcess.run(
            ["curl", "-sS", "--http2-prior-knowledge", "-m", "20"] + way + arguments,
            environment: ["no_proxy": nil, "NO_PROXY": nil])
    }

    @Test(arguments: [false, true]) func `requests of HTTP 2 programs get the token`(inside: Bool) async throws {
        let proxy = try await ProxyInProcess()
        // curl 7.88 can't use such a connection twice.
        for path in ["/a", "/b"] {
            let run = try await curl(proxy, inside: inside, ["http://api.test\(path)"])
            #expect(run.output == "ok", "\(run.transcript)")
        }
        #expect(proxy.origin.requests.map(\.target) == ["/a", "/b"])
        #expect(proxy.origin.requests.allSatisfy { $0.authorization == ["Bearer T1"] })
    }

    @Test func `bodies of HTTP 2 programs pass both ways, larger than a window`() async throws {
        let folder = try TemporaryDirectory()
        let large = pattern(5 << 20, step: 31)
        let text = String(repeating: "0123456789abcdef", count: 300_000)
        let proxy = try await ProxyInProcess { try $0.respond(body: text) }
        let file = try folder.write(large, to: "large")
        let run = try await curl(
            proxy, ["--data-binary", "@\(file)", "-o", folder.path(of: "back"), "http://api.test/"])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(try folder.read("back") == text)
        #expect(proxy.origin.requests.map(\.bodyCount) == [large.count])
        #expect(proxy.origin.requests.allSatisfy { large.starts(with: $0.body) })
    }

    @Test func `a host that is not listed is refused, and the connection serves on`() async throws {
        let proxy = try await ProxyInProcess()
        let run = try await curl(
            proxy, ["-H", "Host: other.test", "-w", "%{http_code} ", "-o", "/dev/null", "http://api.test/"])
        #expect(run.output == "403 ", "\(run.transcript)")
        #expect(try await curl(proxy, ["http://api.test/"]).output == "ok")
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `another host inside a CONNECT of HTTP 2 is refused`() async throws {
        let proxy = try await ProxyInProcess()
        let run = try await curl(
            proxy, inside: true,
            ["-H", "Host: other.test", "-w", "%{http_code}", "-o", "/dev/null", "http://api.test/"])
        #expect(run.output == "403", "\(run.transcript)")
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test(arguments: [false, true])
    func `the preface counts only as a connection's first bytes`(inside: Bool) async throws {
        let proxy = try await ProxyInProcess()
        let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        let connect = inside ? connectRequest("api.test:80") : ""
        func begin(_ rest: String) async throws -> RawClient {
            let client = try await proxy.connect(sending: connect + rest)
            if inside { #expect(try await client.response(to: "CONNECT").status == 200) }
            return client
        }
        let first = try await begin(preface)
        // The server's SETTINGS.
        #expect(try await first.read(count: 9)[3] == 4)
        let request = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n"
        let pipelined = try await begin(request + preface)
        let later = try await begin(request)
        for client in [pipelined, later] {
            #expect(try await client.response().status == 200)
            if client === later { try await client.send(preface) }
            #expect(try await client.response().status == 400)
            #expect(try await client.readToEnd().isEmpty)
        }
        #expect(proxy.origin.requests.count == 2)
    }

    @Test func `bytes behind the preface that are no frames end their connection, and nobody else's`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(
            sending: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        _ = try await client.readToEnd()
        let other = try await proxy.connect(sending: "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")
        _ = try await other.readToEnd()
        #expect(proxy.origin.requests.isEmpty)
        #expect(try await curl(proxy, ["http://api.test/"]).output == "ok")
    }
}
