import Foundation
import TestSupport
import Testing

@Suite("unmodified programs that say https", .timeLimit(.minutes(5)))
struct InterceptedProgramsTests {
    private let directory: TemporaryDirectory
    private let endpoint: TokenEndpoint

    init() throws {
        directory = try TemporaryDirectory()
        endpoint = try .plain()
    }

    private func configuration(
        listen: UInt16, host: String = "api.test", _ url: String, _ lines: String
    ) throws -> String {
        try directory.write(clientSecret, to: "secret")
        let text = ProxyConfiguration(
            listen: listen, tokenEndpoint: endpoint.url,
            upstreams: ProxyConfiguration.upstream(host, url: url, "intercept: true\n" + lines)
        ).text
        return try directory.write(text.replacing("FOLDER", with: directory.path), to: "config.yaml")
    }

    private var environment: [String: String?] {
        InterceptedProgram.clean.merging(["XDG_RUNTIME_DIR": directory.path]) { $1 }
    }

    private func check(_ program: InterceptedProgram, under wrapper: [String], _ origin: SecureOrigin) async throws {
        let command = try program.command("https://api.test\(program.target)", directory)
        let run = try await ChildProcess.run(wrapper + command, environment: environment, within: .seconds(150))
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output.contains(program.says), "\(run.transcript)")
        let requests = origin.recording.requests
        #expect(!requests.isEmpty)
        for request in requests {
            #expect(request.target.hasPrefix(program.target))
            #expect(request.values("Authorization") == ["Bearer \(token)"])
            #expect(request.fields.allSatisfy { !$0.name.lowercased().hasPrefix("proxy-") })
        }
        #expect(origin.recording.problems.isEmpty)
    }

    @Test(arguments: InterceptedProgram.all)
    func `a program that says https gets its token under exec --serve`(program: InterceptedProgram) async throws {
        try await checkServed(program)
    }

    private static func isInstalled(_ name: String) -> Bool {
        ["/usr/bin/\(name)", "/usr/local/bin/\(name)"].contains(where: FileManager.default.isExecutableFile)
    }

    /// deploy/test does not install Ruby, which is large.
    @Test(.enabled(if: isInstalled("ruby")))
    func `Ruby gets its token for https under exec --serve`() async throws { try await checkServed(.ruby) }

    @Test(.enabled(if: isInstalled("certutil")))
    func `Chromium gets its token, with the root in its database`() async throws { try await checkServed(.chromium) }

    /// Below an intermediate: one program for each library of TLS.
    @Test(arguments: [
        InterceptedProgram.curl, .wget, .git, .apt, .python("urllib"), .python("httpx"), .node("https"), .go,
        .java("HttpClient"), .perl("lwp"), .php("curl"),
    ])
    func `a program gets its token at a wildcard's host`(program: InterceptedProgram) async throws {
        try await checkServed(program, host: "\"*.test\"")
    }

    private func checkServed(_ program: InterceptedProgram, host: String = "api.test") async throws {
        let origin = try await SecureOrigin(packages: ["apt", "pip"].contains(program.name))
        let file = try configuration(listen: 1, host: host, origin.url, origin.trust)
        let exec = [try Repository.executable(), "exec", "--serve", "--config", file, "--"]
        try await check(program, under: exec, origin)
        #expect(endpoint.requests.count == 1)
    }

    @Test(arguments: [InterceptedProgram.curl, .python("requests")])
    func `a program gets its token under exec beside a running proxy`(program: InterceptedProgram) async throws {
        let origin = try await SecureOrigin(packages: false)
        let port = try freePort()
        let file = try configuration(listen: port, origin.url, origin.trust)
        let proxy = try ChildProcess([try Repository.executable(), "--config", file], environment: environment)
        try await eventually("the proxy listens") {
            if proxy.ending != nil { throw TestFailure(proxy.transcript) }
            return proxy.errors.contains("listening")
        }
        try await check(program, under: [try Repository.executable(), "exec", "--config", file, "--"], origin)
        #expect(try await proxy.stop() == .exited(0), "\(proxy.transcript)")
        let gone = try await ChildProcess.run(
            [try Repository.executable(), "exec", "--config", file, "--", "true"], environment: environment)
        #expect(gone.ending == .exited(1) && gone.errors.contains("no running proxy"), "\(gone.transcript)")
    }

    @Test(arguments: ["websockets", "websocket_client"])
    func `a wss connection gets its token`(library: String) async throws {
        let server = try await TLSServerProcess([try Repository.python(), fixture("web_sockets.py"), "serve"])
        let file = try configuration(
            listen: 1, "https://localhost:\(server.port)", "tls: {ca_file: \(server.authority.certificateFile)}\n")
        let run = try await ChildProcess.run(
            [
                try Repository.executable(), "exec", "--serve", "--config", file, "--", try Repository.python(),
                fixture("fetch/fetch.py"), library, "https://api.test/chat",
            ], environment: environment)
        #expect(run.output == "Bearer \(token)\n", "\(run.transcript)")
    }

    /// Programs in all the ways in which distrust shows: an alert, an end, a reset, silence.
    private static let distrustful: [InterceptedProgram] = [
        .curl, .wget, .git, .python("urllib"), .python("requests"), .python("aiohttp"), .node("https"), .node("fetch"),
        .go, .java("HttpClient"), .java("HttpURLConnection"), .apt,
    ]

    /// Those that name themselves in CONNECT.
    private static let variables = [
        "curl": "CURL_CA_BUNDLE", "wget": "WGETRC", "git": "GIT_SSL_CAINFO", "Go net/http": "SSL_CERT_FILE",
        "Java HttpURLConnection": "JAVA_TOOL_OPTIONS", "apt": "APT_CONFIG",
    ]

    @Test(arguments: distrustful)
    func `a program that does not trust the proxy gives one line of the log`(
        program: InterceptedProgram
    ) async throws {
        let origin = try await SecureOrigin(packages: false)
        let proxy = try await RunningProxy(
            to: origin.url, upstream: "intercept: true\n" + origin.trust,
            environment: ["XDG_RUNTIME_DIR": directory.path])
        let run = try await ChildProcess.run(
            try program.command("https://api.test\(program.target)", directory),
            environment: environment.merging([
                "http_proxy": proxy.url, "https_proxy": proxy.url, "NODE_USE_ENV_PROXY": "1",
                "JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=\(proxy.port)",
            ]) { $1 }, within: .seconds(150))
        #expect(run.ending != .exited(0), "\(run.transcript)")
        // All of its lines are written by the time that the proxy ends.
        #expect(try await proxy.terminate() == .exited(0))
        let lines = proxy.log.split(separator: "\n").filter { $0.contains("a program got no TLS from the proxy") }
        #expect(lines.count == 1, "\(proxy.log) \(run.transcript)")
        #expect(lines.allSatisfy { $0.contains("target=api.test:443") && $0.contains("heimdallr-proxy exec") })
        if let variable = Self.variables[program.name] {
            #expect(lines.allSatisfy { $0.contains("which sets \(variable);") }, "\(lines)")
        }
        #expect(origin.recording.requests.isEmpty)
    }
}
