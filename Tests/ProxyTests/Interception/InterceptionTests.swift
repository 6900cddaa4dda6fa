@testable import Configuration
import Cryptography
import Foundation
import Proxy
import TLSServer
import TestSupport
import Testing

@Suite("TLS inside CONNECT is opened where intercept says so", .stopsProxies, .timeLimit(.minutes(2)))
struct InterceptionTests {
    /// `api.test` and `two.test` are intercepted, `plain.test` is listed only.
    private static func proxy(
        _ proxy: String = "", _ failed: Recorder<FailedHandshake>? = nil,
        change: (inout Configuration) -> Void = { _ in }
    ) async throws -> ProxyInProcess {
        var observer = ProxyObserver()
        if let failed { observer.handshakeFailed = { failed.append($0) } }
        return try await ProxyInProcess(
            upstream: "intercept: true", proxy: proxy,
            more: """
                - {host: two.test, url: ORIGIN, client: api, allow_plaintext: true, intercept: true}
                - {host: plain.test, url: ORIGIN, client: api, allow_plaintext: true}
                """, observer: observer, change: change)
    }

    /// Runs curl by the proxy. It trusts the proxy's roots, or those of another one.
    private func curl(
        _ proxy: ProxyInProcess, _ arguments: [String], trusts: Bool = true
    ) async throws -> ChildProcess {
        let folder = try TemporaryDirectory()
        let roots =
            try trusts
            ? #require(proxy.server.interception).rootsPEM : CertificateAuthority.issue(for: ["api.test"]).rootsPEM
        let file = try folder.write(roots, to: "roots.pem")
        return try await ChildProcess.run(
            ["curl", "-sS", "--cacert", file, "-x", "http://127.0.0.1:\(proxy.port)"] + arguments,
            environment: ["no_proxy": nil, "NO_PROXY": nil, "SSL_CERT_FILE": nil])
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a request inside intercepted TLS gets the token`(version: String) async throws {
        let proxy = try await Self.proxy()
        let run = try await curl(
            proxy,
            [
                "--tlsv\(version)", "--tls-max", version, "https://api.test/a", "https://api.test/b",
            ])
        #expect(run.output == "okok", "\(run.transcript)")
        #expect(proxy.origin.requests.map(\.target) == ["/a", "/b"])
        #expect(proxy.origin.requests.allSatisfy { $0.authorization == ["Bearer T1"] })
    }

    // MARK: Hosts that are not listed one by one

    private static let wildcard =
        "- {host: '*.wild.test', url: ORIGIN, client: api, allow_plaintext: true, intercept: true}"

    @Test func `a wildcard's hosts get certificates on first use`() async throws {
        let proxy = try await ProxyInProcess(more: Self.wildcard)
        #expect(try #require(proxy.server.interception).certificates.roots.isEmpty)
        let run = try await curl(
            proxy, ["https://a.wild.test/a", "https://b.c.wild.test/b", "https://a.wild.test/c"])
        #expect(run.output == "okokok", "\(run.transcript)")
        #expect(proxy.origin.requests.map(\.target) == ["/a", "/b", "/c"])
        #expect(proxy.origin.requests.allSatisfy { $0.authorization == ["Bearer T1"] })
        // Neither the domain itself nor a longer name is one of its hosts.
        for host in ["wild.test", "notwild.test", "wild.test.test"] {
            let refused = try await curl(proxy, ["https://\(host)/"])
            #expect(refused.errors.contains("403"), "\(refused.transcript)")
        }
    }

    @Test func `many new hosts at once all get their own`() async throws {
        let proxy = try await ProxyInProcess(more: Self.wildcard)
        let hosts = (0..<60).map { "https://h\($0).wild.test/\($0)" }
        let run = try await curl(proxy, ["-Z", "--parallel-immediate", "--parallel-max", "60"] + hosts)
        #expect(run.output == String(repeating: "ok", count: 60), "\(run.transcript)")
    }

    @Test func `a certificate is signed for listed hosts only, though more are permitted`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "intercept: true",
            more: "- {host: in.wild.test, url: ORIGIN, client: api, allow_plaintext: true, intercept: true}",
            change: { $0.interception = InterceptionSettings(permit: ["wild.test"]) })
        let interception = try #require(proxy.server.interception)
        #expect(Array(interception.certificates.leaves.keys) == ["api.test"])
        let to = ["--connect-to", "::192.0.2.1:443"]
        for more in [[], to] {
            let listed = try await curl(proxy, more + ["https://in.wild.test/", "https://api.test/"])
            #expect(listed.output == "okok", "\(listed.transcript)")
        }
        // By the address of CONNECT any name may be asked for.
        for host in ["out.wild.test", "wild.test", "x.in.wild.test"] {
            let refused = try await curl(proxy, to + ["https://\(host)/"])
            #expect(refused.ending == .exited(35), "\(refused.transcript)")
        }
        #expect(proxy.origin.requests.count == 4)
    }

    @Test func `large bodies pass both ways inside intercepted TLS`() async throws {
        let folder = try TemporaryDirectory()
        let large = pattern(5 << 20, step: 31)
        let text = String(repeating: "0123456789abcdef", count: 300_000)
        let proxy = try await ProxyInProcess(upstream: "intercept: true") { try $0.respond(body: text) }
        let file = try folder.write(large, to: "large")
        let run = try await curl(
            proxy, ["--data-binary", "@\(file)", "-o", folder.path(of: "back"), "https://api.test/"])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(try folder.read("back") == text)
        #expect(proxy.origin.requests.map(\.bodyCount) == [large.count])
    }

    @Test func `each intercepted host has its own certificate`() async throws {
        let proxy = try await Self.proxy()
        for host in ["api.test", "two.test"] {
            let run = try await curl(proxy, ["-v", "https://\(host)/"])
            #expect(run.output == "ok", "\(run.transcript)")
            #expect(run.errors.contains("subjectAltName: host \"\(host)\" matched"), "\(run.errors)")
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a session is resumed for its host, by its listener and under its authority only`(version: String) async throws
    {
        let proxy = try await Self.proxy { $0.proxy.listen.append(.tcp(host: "127.0.0.1", port: 0)) }
        let otherAuthority = try await Self.proxy()
        let folder = try TemporaryDirectory()
        let session = folder.path(of: "session")
        func handshake(_ port: UInt16, _ host: String, _ option: String) async throws -> String {
            try await ChildProcess.run(
                [
                    "openssl", "s_client", "-proxy", "127.0.0.1:\(port)", "-connect", "\(host):443", "-servername",
                    host,
                    "-ign_eof", version, option, session,
                ], input: Array("GET / HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8)
            ).output
        }
        #expect(try await handshake(proxy.port, "api.test", "-sess_out").contains("New, TLSv"))
        #expect(try await handshake(proxy.port, "api.test", "-sess_in").contains("Reused, TLSv"))
        let otherListener = proxy.upstreamPort
        for (port, host) in [
            (proxy.port, "two.test"), (otherListener, "api.test"), (otherAuthority.port, "api.test"),
        ] {
            let output = try await handshake(port, host, "-sess_in")
            #expect(output.contains("New, TLSv") && !output.contains("Reused, TLSv"), "\(output)")
        }
    }

    @Test func `a request inside intercepted TLS has to name the CONNECT's host`() async throws {
        let proxy = try await Self.proxy()
        for host in ["two.test", "plain.test", "nobody.test", "api.test:80"] {
            let run = try await curl(
                proxy, ["-w", "%{http_code}", "-o", "/dev/null", "-H", "Host: \(host)", "https://api.test/"])
            #expect(run.output == "403", "\(host) \(run.transcript)")
        }
        let same = try await curl(proxy, ["-H", "Host: api.test:443", "https://api.test/"])
        #expect(same.output == "ok", "\(same.transcript)")
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `a listed host without interception keeps its 403`() async throws {
        let proxy = try await Self.proxy()
        let run = try await curl(proxy, ["-v", "https://plain.test/"])
        #expect(run.errors.contains("403 Use http://plain.test instead of https"), "\(run.errors)")
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `where CONNECT names an address, the server name picks among intercepted hosts`() async throws {
        let proxy = try await Self.proxy()
        let to = ["--connect-to", "::192.0.2.1:443"]
        let run = try await curl(proxy, to + ["https://two.test/"])
        #expect(run.output == "ok", "\(run.transcript)")
        for host in ["plain.test", "nobody.test"] {
            let refused = try await curl(proxy, to + ["https://\(host)/"])
            #expect(refused.ending == .exited(35), "\(refused.transcript)")
        }
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `an address with its own certificate is no way to other hosts`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "intercept: true",
            more: "- {host: 127.0.0.9, url: ORIGIN, client: api, allow_plaintext: true, intercept: true}")
        let own = try await curl(proxy, ["https://127.0.0.9/"])
        #expect(own.output == "ok", "\(own.transcript)")
        let other = try await curl(
            proxy, ["-w", "%{http_code}", "-o", "/dev/null", "-H", "Host: api.test", "https://127.0.0.9/"])
        #expect(other.output == "403", "\(other.transcript)")
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `another server name than the CONNECT's is refused`() async throws {
        let failed = Recorder<FailedHandshake>()
        let proxy = try await Self.proxy("", failed)
        let run = try await curl(proxy, ["--connect-to", "::api.test:443", "https://two.test/"])
        #expect(run.ending == .exited(35), "\(run.transcript)")
        try await eventually("its event") { failed.all.count == 1 }
        #expect(failed.all[0].target == "api.test:443")
    }

    @Test func `interception comes before tunnels`() async throws {
        let proxy = try await Self.proxy("connect: tunnel\ntunnels: ['api.test:443', '*']")
        let run = try await curl(proxy, ["https://api.test/"])
        #expect(run.output == "ok", "\(run.transcript)")
    }

    @Test func `plain HTTP inside the same CONNECT's port is no way around TLS`() async throws {
        let proxy = try await Self.proxy()
        let client = try await proxy.connect(
            sending: connectRequest("api.test:443") + "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(try await client.response(to: "CONNECT").status == 200)
        #expect(try await client.response().status == 403)
    }

    @Test func `a program that does not trust the proxy's certificate is named`() async throws {
        let failed = Recorder<FailedHandshake>()
        let proxy = try await Self.proxy("", failed)
        #expect(try await curl(proxy, ["https://api.test/"], trusts: false).ending != .exited(0))
        try await eventually("its event") { failed.all.count == 1 }
        guard case .alert(let alert) = failed.all[0].end else {
            Issue.record("\(failed.all[0].end)")
            return
        }
        #expect("\(alert)" == "unknown_ca")
        #expect(failed.all[0].target == "api.test:443")
        #expect(failed.all[0].caller == "127.0.0.1")
        #expect(failed.all[0].program?.hasPrefix("curl/") == true)
        #expect(proxy.origin.requests.isEmpty)
    }
}
