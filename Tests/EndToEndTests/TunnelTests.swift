import Foundation
import TestSupport
import Testing

@Suite("tunnels, by real programs and in crowds", .timeLimit(.minutes(5)))
struct TunnelTests {
    private static let mebibyte = 1 << 20
    private static let none: [String: String?] = [
        "http_proxy": nil, "HTTP_PROXY": nil, "https_proxy": nil, "no_proxy": nil, "NO_PROXY": nil, "ALL_PROXY": nil,
        "all_proxy": nil, "GIT_SSL_CAINFO": nil, "REQUESTS_CA_BUNDLE": nil, "CURL_CA_BUNDLE": nil, "SSL_CERT_FILE": nil,
        "SSL_CERT_DIR": nil, "PIP_CERT": nil,
    ]

    private static func proxy(_ tunnels: String, more: String = "") async throws -> RunningProxy {
        // No request in these tests needs a token. There is no token endpoint.
        try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "http://127.0.0.1:1/token", proxy: "connect: tunnel\ntunnels: [\(tunnels)]\n\(more)",
                upstreams: ProxyConfiguration.upstream(url: "http://127.0.0.1:1")))
    }

    // MARK: Programs

    @Test func `curl passes a tunnel that it is told to use, and one that it makes for https`() async throws {
        let nginx = try await Nginx.secure()
        let proxy = try await Self.proxy("localhost:\(nginx.httpsPort), localhost:\(nginx.httpPort)")
        let plain = try await ChildProcess.output(
            of: ["curl", "-sS", "-p", "-x", proxy.url, "http://localhost:\(nginx.httpPort)/plain"],
            environment: Self.none)
        #expect(plain.contains("request: GET /plain HTTP/1.1\n"))
        #expect(plain.contains("authorization: \n"))
        #expect(plain.contains("via: \n"))
        for extra in [["--http1.1"], ["--http2"], ["--proxytunnel", "--proxy1.0", proxy.url]] {
            let secure = try await ChildProcess.output(
                of: [
                    "curl", "-sS", "--cacert", nginx.authority.certificateFile, "-H", "Authorization: Basic bWluZQ==",
                ] + (extra.contains("--proxy1.0") ? [] : ["-x", proxy.url]) + extra
                    + ["https://localhost:\(nginx.httpsPort)/secure"], environment: Self.none)
            #expect(secure.contains("authorization: Basic bWluZQ==\n"))
            #expect(secure.contains("server-name: localhost\n"))
        }
        let other = try await ChildProcess.run(
            ["curl", "-sS", "-v", "-x", proxy.url, "https://localhost:1/"], environment: Self.none)
        #expect(other.ending == .exited(56))
        #expect(other.errors.contains("HTTP/1.1 403 Add localhost:1 to proxy.tunnels, or to upstreams with intercept"))
        try await eventually("the log") { proxy.log.contains("method=CONNECT host=localhost:1 ") }
    }

    @Test func `git clones and pushes through a tunnel`() async throws {
        let folder = try TemporaryDirectory()
        let authority = try await PrivateCA()
        let environment = Self.none.merging([
            "GIT_CONFIG_NOSYSTEM": "1", "HOME": folder.path, "GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
        ]) { $1 }
        // Its own credential, which only it and the server can read.
        let options = [
            "-c", "http.sslCAInfo=\(authority.certificateFile)", "-c", "http.extraHeader=Authorization: Bearer git",
        ]
        let git: @Sendable ([String], [String]) async throws -> Void = { more, arguments in
            try await ChildProcess.output(
                of: ["git"] + options + more + arguments, environment: environment, directory: folder.path)
        }
        try await git([], ["init", "-q", "--bare", "served.git"])
        try await git([], ["-C", "served.git", "config", "http.receivepack", "true"])
        let server = try ChildProcess([try Repository.python(), fixture("git_server.py"), folder.path, "git"])
        let nginx = try await Nginx(
            certificate: try await authority.server(),
            locations: "location / { proxy_pass http://127.0.0.1:\(try await server.printedPort()); }")
        let proxy = try await Self.proxy("localhost:\(nginx.httpsPort)")
        let by = ["-c", "http.proxy=\(proxy.url)"]
        try await git(by, ["clone", "-q", "https://localhost:\(nginx.httpsPort)/served.git", "first"])
        let noise = (0..<(3 << 20)).map { _ in UInt8.random(in: .min ... .max) }
        try folder.write(noise, to: "first/noise")
        try await git(["-C", "first"], ["add", "noise"])
        try await git(["-C", "first"], ["commit", "-q", "-m", "noise"])
        try await git(["-C", "first"] + by, ["push", "-q", "origin", "HEAD:refs/heads/main"])
        try await git(
            by, ["clone", "-q", "--branch", "main", "https://localhost:\(nginx.httpsPort)/served.git", "second"])
        #expect(FileManager.default.contents(atPath: folder.path(of: "second/noise")) == Data(noise))
        try await eventually("the log") { proxy.log.contains("method=CONNECT host=localhost:\(nginx.httpsPort)") }
    }

    @Test func `pip installs through a tunnel`() async throws {
        let folder = try TemporaryDirectory()
        try await ChildProcess.output(of: [try Repository.python(), fixture("package_repositories.py"), folder.path])
        let nginx = try await Nginx.secure(locations: "location / { root \(folder.path); index index.html; }")
        let proxy = try await Self.proxy("localhost:\(nginx.httpsPort)")
        try await ChildProcess.output(
            of: [
                try Repository.python(), "-m", "pip", "--isolated", "install", "--quiet", "--no-cache-dir",
                "--disable-pip-version-check", "--proxy", proxy.url, "--cert", nginx.authority.certificateFile,
                "--index-url",
                "https://localhost:\(nginx.httpsPort)/simple", "--target", folder.path(of: "installed"),
                "heimdallr-test",
            ], environment: Self.none)
        #expect(try folder.read("installed/heimdallr_test.py") == "ANSWER = 42\n")
        try await eventually("the log") { proxy.log.contains("method=CONNECT host=localhost:\(nginx.httpsPort)") }
    }

    // MARK: Where to

    private static let obstacle: String? = {
        guard geteuid() == 0 else { return "network namespaces need root" }
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        probe.arguments = ["--net", "--mount", "sh", "-c", "ip link set lo up && ip addr add 9.9.9.9/32 dev lo"]
        probe.standardError = FileHandle.nullDevice
        guard (try? probe.run()) != nil else { return "there is no unshare" }
        probe.waitUntilExit()
        return probe.terminationStatus == 0 ? nil : "there are no network namespaces here"
    }()

    private struct Names: Decodable {
        struct Result: Decodable, Equatable {
            var status: Int
            var error: String?
            /// The address that the other end was reached at.
            var at: String?
        }
        var results: [String: [Result]]
        var reached: [String]
        var lookups: Int
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `no name leads to a private address, whatever its server says from one look-up to the next`() async throws {
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [
                "unshare", "--net", "--mount", "/usr/bin/python3", fixture("changing_names.py"),
                try Repository.executable(), folder.path,
            ], within: .seconds(100))
        let names = try JSONDecoder().decode(Names.self, from: Data(output.utf8))
        let good = Names.Result(status: 200, error: nil, at: "9.9.9.9")
        let bad = Names.Result(status: 403, error: "destination_ip_prohibited", at: nil)
        #expect(names.results["public.test"] == [good])
        for name in ["loopback.test", "private.test", "metadata.test", "mapped.test", "local6.test", "zero.test"] {
            #expect(names.results[name] == [bad], "\(name)")
        }
        // Has both: the public one is taken.
        #expect(names.results["both.test"] == [good])
        // Says one thing, then another: each attempt is one look-up, and goes where that led or nowhere.
        let changing = try #require(names.results["changing"])
        #expect(changing.count == 24)
        #expect(changing.allSatisfy { $0 == good || $0 == bad })
        #expect(changing.contains(good) && changing.contains(bad))
        #expect(Set(names.reached) == ["9.9.9.9"])
        #expect(names.lookups >= 12)
    }

    // MARK: Load

    @Test func `a thousand tunnels at once are alive, in bounded memory`() async throws {
        let server = try ChildProcess(["/usr/bin/python3", fixture("tunnel_crowd.py"), "echo"])
        let port = try await server.printedPort()
        let proxy = try await Self.proxy("127.0.0.1:\(port)", more: "max_connections: 1100")
        let before = try proxy.process.residentMemory()
        let crowd = try await ChildProcess.run(
            ["/usr/bin/python3", fixture("tunnel_crowd.py"), "crowd", "\(proxy.port)", "\(port)", "1000"])
        #expect(crowd.output == "open 1000\nechoed 1000\nechoed 1000\nended 1000\n", "\(crowd.errors)")
        #expect(try proxy.process.peakResidentMemory() - before < 64 * Self.mebibyte)
        #expect(try await proxy.terminate() == .exited(0))
    }

    @Test func `two hundred tunnels that are not read hold no more than 64 KiB each`() async throws {
        let server = try ChildProcess(["/usr/bin/python3", fixture("tunnel_crowd.py"), "flood"])
        let port = try await server.printedPort()
        let proxy = try await Self.proxy("127.0.0.1:\(port)")
        let before = try proxy.process.residentMemory()
        let crowd = try ChildProcess(
            ["/usr/bin/python3", fixture("tunnel_crowd.py"), "deaf", "\(proxy.port)", "\(port)", "200"])
        try await eventually("all are open") { crowd.output == "open 200\n" }
        // The server says how much it got rid of, until that is nothing any more.
        try await eventually("all are full", within: .seconds(60)) { server.output.hasSuffix("\nfull\n") }
        #expect(try proxy.process.peakResidentMemory() - before < 28 * Self.mebibyte)
        // Another client is served.
        #expect(try await proxy.get("http://nobody.test/").status == 403)
    }

    @Test(arguments: ["tunnel", "upgrade"])
    func `a tunnel with 1 GiB each way costs less than 16 MiB`(kind: String) async throws {
        let server = try ChildProcess([
            "/usr/bin/python3", fixture("tunnel_crowd.py"), kind == "upgrade" ? "switch" : "exchange",
        ])
        let port = try await server.printedPort()
        let proxy = try await RunningProxy(
            to: "http://127.0.0.1:\(port)", proxy: "connect: tunnel\ntunnels: [127.0.0.1:\(port)]")
        #expect(try await proxy.get("http://nobody.test/").status == 403)
        let before = try proxy.process.residentMemory()
        let start = ContinuousClock.now
        let client = try await ChildProcess.run(
            ["/usr/bin/python3", fixture("tunnel_crowd.py"), kind, "\(proxy.port)", "\(port)", "1024"])
        #expect(client.output == "sent 1073741824 1073741824\n", "\(client.errors)")
        try await eventually("the server has it all") { server.output.hasSuffix("\nsent 1073741824 1073741824\n") }
        #expect(ContinuousClock.now - start < .seconds(60))
        #expect(try proxy.process.peakResidentMemory() - before < 16 * Self.mebibyte)
    }

    // MARK: Abrupt ends

    @Test(arguments: ["client", "server"])
    func `a program that is killed ends the other side within a second`(victim: String) async throws {
        let server = try ChildProcess(["/usr/bin/python3", fixture("tunnel_crowd.py"), "echo"])
        let port = try await server.printedPort()
        let proxy = try await Self.proxy("127.0.0.1:\(port)")
        let client = try ChildProcess(
            ["/usr/bin/python3", fixture("tunnel_crowd.py"), "hold", "\(proxy.port)", "\(port)", "1"])
        try await eventually("it is open") { client.output == "open 1\n" }
        let (killed, left, mark) = victim == "client" ? (client, server, "gone\n") : (server, client, "gone\n")
        killed.kill()
        try await killed.ended()
        try await eventually("the other side sees it", within: .seconds(1)) { left.output.hasSuffix(mark) }
    }

    @Test func `SIGTERM leaves tunnels drain_timeout, and a second one does not`() async throws {
        let server = try ChildProcess(["/usr/bin/python3", fixture("tunnel_crowd.py"), "echo"])
        let port = try await server.printedPort()
        let proxy = try await Self.proxy("127.0.0.1:\(port)", more: "drain_timeout: 20s")
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("CONNECT 127.0.0.1:\(port) HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try await client.response(to: "CONNECT").status == 200)
        proxy.process.signal(SIGTERM)
        try await refusesConnections(proxy.port)
        try await client.send("still here")
        #expect(try await client.read(count: 10) == Array("still here".utf8))
        #expect(proxy.process.ending == nil)
        proxy.process.signal(SIGTERM)
        #expect(try await client.readToEnd(within: .seconds(5)).isEmpty)
        _ = try await proxy.process.ended(within: .seconds(10))
    }
}
