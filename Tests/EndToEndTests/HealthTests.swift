import Foundation
import TestSupport
import Testing

@Suite("heimdallr-proxy health", .timeLimit(.minutes(2)))
struct HealthTests {
    /// One line, and the exit code that HEALTHCHECK knows.
    private func health(_ arguments: [String], environment: [String: String?] = [:], in directory: String? = nil)
        async throws -> (isGood: Bool, line: String)
    {
        let run = try await RunningProxy.run(["health"] + arguments, environment: environment, directory: directory)
        #expect(run.ending == .exited(0) || run.ending == .exited(1), "\(run.transcript)")
        let isGood = run.ending == .exited(0)
        let line = isGood ? run.output : run.errors
        #expect(line.hasSuffix("\n") && line.count(where: { $0 == "\n" }) == 1, "\(run.transcript)")
        #expect((isGood ? run.errors : run.output).isEmpty, "\(run.transcript)")
        return (isGood, line)
    }

    private func file(of proxy: RunningProxy) -> String { proxy.directory.path + "/config.yaml" }

    @Test func `readiness waits for the first token, liveness does not, and neither reads a secret`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, _ in
            gate.wait()
            return .token(token)
        }
        let proxy = try await RunningProxy(to: RecordingOrigin(), admin: "", tokenEndpoint: endpoint)
        _ = try await endpoint.requests(1)
        let file = file(of: proxy)
        try FileManager.default.removeItem(atPath: proxy.directory.path + "/secret")
        for flags in [[], ["--ready"], ["--strict"]] {
            let answer = try await health(["--config", file] + flags)
            #expect(!answer.isGood)
            #expect(answer.line.contains("client api waits"))
        }
        #expect(try await health(["--config", file, "--live"]).isGood)
        gate.open()
        try await eventually("it is ready") { try await health(["--config", file]).isGood }
        #expect(try await health(["--config", file, "--strict"]).line == "ready\n")
    }

    @Test func `health --wait waits until the proxy is ready, and no longer than it was told`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, _ in
            gate.wait()
            return .token(token)
        }
        let proxy = try await RunningProxy(to: RecordingOrigin(), admin: "", tokenEndpoint: endpoint)
        _ = try await endpoint.requests(1)
        let file = file(of: proxy)
        let begin = ContinuousClock.now
        #expect(try await !health(["--config", file, "--wait", "1"]).isGood)
        #expect(ContinuousClock.now - begin >= .seconds(1))
        async let waited = health(["--config", file, "--wait", "60"])
        gate.open()
        #expect(try await waited.line == "ready\n")
        // Nobody is there yet, or never will be.
        let directory = try TemporaryDirectory()
        let none = try directory.write("admin: {listen: \"127.0.0.1:\(try freePort())\"}\n", to: "config.yaml")
        #expect(try await !health(["--config", none, "--wait", "1"]).isGood)
        let wrong = try await RunningProxy.run(["health", "--config", file, "--wait", "0"])
        #expect(wrong.ending == .exited(2))
        let start = ContinuousClock.now
        _ = try await health(["--wait", "60"], environment: ["HEIMDALLR_UPSTREAM": nil], in: directory.path + "/..")
        #expect(ContinuousClock.now - start < .seconds(30))
    }

    @Test func `a degraded client shows in health --strict alone`() async throws {
        let endpoint = try TokenEndpoint([.error("invalid_client", status: 401)])
        let proxy = try await RunningProxy(to: RecordingOrigin(), admin: "", tokenEndpoint: endpoint)
        try await eventually("it is ready") { try await health(["--config", file(of: proxy)]).isGood }
        let strict = try await health(["--config", file(of: proxy), "--strict"])
        #expect(!strict.isGood)
        #expect(strict.line.contains("client api"))
    }

    @Test(arguments: ["127.0.0.1", "0.0.0.0", "localhost", "[::1]"])
    func `the port tells health to any user: no socket is needed`(host: String) async throws {
        let port = try freePort()
        let proxy = try await RunningProxy(
            to: RecordingOrigin(), admin: "listen: \"\(host):\(port)\"\ntoken: {file: FOLDER/token}",
            more: "", files: ["token": "0123456789abcdefghij"])
        try FileManager.default.removeItem(atPath: proxy.directory.path + "/admin.sock")
        try await eventually("it is ready") { try await health([], in: proxy.directory.path).isGood }
    }

    @Test func `a file that was spoilt since the start still leads health to the proxy`() async throws {
        let proxy = try await RunningProxy(to: RecordingOrigin(), admin: "")
        let socket = try await proxy.administration().socket
        let text = "admin:\n  socket: \(socket)\n  listen: 127.0.0.1:\(try freePort())\n  lissen: [\n"
        let file = try proxy.directory.write(text, to: "config.yaml")
        try await eventually("it is ready") { try await health(["--config", file]).isGood }
    }

    @Test func `without an admin section health asks whether somebody serves, which leaves no trace`() async throws {
        let port = try freePort()
        let proxy = try await RunningProxy(to: RecordingOrigin(), proxy: "listen: 127.0.0.1:\(port)")
        try await eventually("its token: \(proxy.log)") {
            proxy.log.contains("event=token_acquired") && proxy.log.hasSuffix("\n")
        }
        let before = proxy.log
        for flags in [[], ["--live"]] {
            let answer = try await health(["--config", file(of: proxy)] + flags)
            #expect(answer.isGood)
            #expect(answer.line.contains("127.0.0.1:\(port)"))
        }
        for flag in ["--ready", "--strict"] {
            let answer = try await health(["--config", file(of: proxy), flag])
            #expect(!answer.isGood)
            #expect(answer.line.contains("admin: {}"))
        }
        #expect(proxy.log == before)
        // A loop that hangs accepts connections, too: the kernel does.
        proxy.process.signal(SIGSTOP)
        #expect(try await !health(["--config", file(of: proxy), "--timeout", "1"]).isGood)
        proxy.process.signal(SIGCONT)
        _ = try await proxy.terminate()
        #expect(try await !health(["--config", file(of: proxy)]).isGood)
    }

    @Test func `health asks a Unix listener as well`() async throws {
        let proxy = try await RunningProxy(to: RecordingOrigin(), proxy: "listen: {unix: FOLDER/proxy.sock}")
        #expect(try await health(["--config", file(of: proxy)]).line.contains("proxy.sock"))
    }

    @Test func `the environment alone is a configuration for health`() async throws {
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint.plain()
        let directory = try TemporaryDirectory()
        let environment: [String: String?] = [
            "HEIMDALLR_UPSTREAM": origin.url, "HEIMDALLR_TOKEN_ENDPOINT": endpoint.url, "HEIMDALLR_CLIENT_ID": "x",
            "HEIMDALLR_CLIENT_SECRET": clientSecret, "HEIMDALLR_ALLOW_PLAINTEXT": "true",
            "HEIMDALLR_LISTEN": "127.0.0.1:\(try freePort())", "HEIMDALLR_ADMIN_LISTEN": "127.0.0.1:\(try freePort())",
            "HEIMDALLR_ADMIN_SOCKET": directory.path + "/admin.sock",
        ]
        let process = try ChildProcess(
            [try Repository.executable()], environment: environment, directory: directory.path)
        try await eventually("it is ready: \(process.errors)") {
            try await health(["--ready"], environment: environment, in: directory.path).isGood
        }
        #expect(try await process.stop() == .exited(0))
        let answer = try await health([], environment: environment, in: directory.path)
        #expect(!answer.isGood)
        #expect(answer.line.contains("refused"))
    }

    @Test func `a proxy that accepts and says nothing, or drips, is given up in time`() async throws {
        let silent = try RawListener()
        let directory = try TemporaryDirectory()
        let file = try directory.write("admin: {listen: \"127.0.0.1:\(silent.port)\"}\n", to: "config.yaml")
        let took = try await ContinuousClock().measure {
            let answer = try await health(["--config", file, "--timeout", "1"])
            #expect(!answer.isGood)
            #expect(answer.line.contains("within 1 s"))
        }
        #expect(took < .seconds(20))
    }

    @Test func `health prints another program's answer as one line, and turns nothing around`() async throws {
        let stranger = try RecordingOrigin {
            try $0.respond(body: "ready\u{202E}\u{2066}a\u{2028}b\u{2029}c\u{1B}[31md\u{85}e\u{AD}")
            $0.close()
        }
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            "admin: {listen: \"127.0.0.1:\(stranger.url.split(separator: ":").last ?? "")\"}\n", to: "config.yaml")
        let line = try await health(["--config", file]).line
        #expect(line == "ready??a?b?c?[31md?e?\n")
    }

    @Test func `health without a configuration is an error, and wrong usage is wrong usage`() async throws {
        let directory = try TemporaryDirectory()
        let answer = try await health([], environment: ["HEIMDALLR_UPSTREAM": nil], in: directory.path)
        #expect(!answer.isGood)
        #expect(answer.line.contains("--config"))
        for arguments in [["--timeout", "0"], ["--live", "--strict"]] {
            #expect(try await RunningProxy.run(["health"] + arguments).ending == .exited(2))
        }
    }
}
