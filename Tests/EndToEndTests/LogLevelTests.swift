import Foundation
import TestSupport
import Testing

@Suite("the log's level and colours", .timeLimit(.minutes(2)))
struct LogLevelTests {
    private let origin: RecordingOrigin
    private let proxy: RunningProxy

    /// Written down, since the other tests may run at another one.
    private static let level = "log: {level: info}"

    init() async throws {
        origin = try RecordingOrigin()
        proxy = try await RunningProxy(to: origin, admin: "", more: Self.level)
    }

    private func command(_ arguments: String...) async throws -> ChildProcess {
        let socket = try await proxy.administration().socket
        return try await RunningProxy.run(["log-level", "--socket", socket] + arguments)
    }

    /// Sends a request that is logged only at `debug`. Returns whether there was a line.
    private func tellsDetails() async throws -> Bool {
        let mark = proxy.log.count
        let (_, port, _) = try await proxy.administration()
        _ = try await RawClient.exchange(
            port: port, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        // The log is written in order: behind this line there is no other to come.
        proxy.process.signal(SIGUSR1)
        let rest = try await eventually("a line of the signal") { [proxy] in
            let rest = String(proxy.log.dropFirst(mark))
            return rest.contains("signal=SIGUSR1") ? rest : nil
        }
        return rest.contains(" debug admin request ")
    }

    @Test func `the log's level changes while the proxy runs, and back by itself`() async throws {
        #expect(try await command().output == "info, as the configuration says\n")
        #expect(try await !tellsDetails())
        let changed = try await command("debug", "--for", "2s")
        #expect(changed.ending == .exited(0), "\(changed.transcript)")
        #expect(changed.output == "The log's level is debug for another 2s, then info.\n")
        #expect(try await tellsDetails())
        #expect(try await command().output.hasPrefix("debug for another "))
        try await eventually("it fell back") { [proxy] in
            proxy.log.contains("the log's level is the configured level again")
        }
        #expect(try await command().output == "info, as the configuration says\n")
        #expect(try await !tellsDetails())
        #expect(proxy.log.contains(" notice the log's level was changed by log-level for=2s level=debug"))
    }

    @Test func `a reload changes the level that counts afterwards`() async throws {
        let file = proxy.directory.path + "/config.yaml"
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(try await command("debug", "--for", "1h").ending == .exited(0))
        try proxy.directory.write(text.replacing(Self.level, with: "log: {level: warning}"), to: "config.yaml")
        let reload = try await RunningProxy.run(["reload", "--config", file])
        #expect(reload.ending == .exited(0), "\(reload.transcript)")
        #expect(reload.output.contains("The log's level is debug for another "))
        #expect(reload.output.contains(", then warning.\n"))
        #expect(try await tellsDetails())
        // The configuration's own ends it.
        #expect(try await command("warning").output == "The log's level is warning, as the configuration says.\n")
        #expect(try await !tellsDetails())
        // Without a change by hand a reload sets it at once.
        try proxy.directory.write(text.replacing(Self.level, with: "log: {level: debug}"), to: "config.yaml")
        #expect(
            try await RunningProxy.run(["reload", "--config", file]).output.contains(
                "The log's level is debug, as the configuration says.\n"))
        #expect(try await tellsDetails())
    }

    @Test(arguments: [
        (["loud"], "there is no level \"loud\". The levels: trace, debug, info, notice, warning, error"),
        (["warn"], "did you mean \"warning\"?"),
        (["debug", "--for", "soon"], "--for soon: write a duration such as 500ms, 30s, 5m or 1h"),
        (["debug", "--for", "2d"], "--for 2d: write a duration such as"),
        (["debug", "--for", "0s"], "--for 0s: write a duration from 1s to 24h"),
        (["debug", "--for", "48h"], "--for 48h: write a duration from 1s to 24h"),
        (["--for", "10m"], "--for needs a level: log-level debug --for 10m"),
    ])
    func `a level that does not exist is wrong usage, and says what to write`(arguments: [String], sentence: String)
        async throws
    {
        let run = try await RunningProxy.run(["log-level", "--socket", "/nowhere"] + arguments)
        #expect(run.ending == .exited(2), "\(run.transcript)")
        #expect(run.errors.contains(sentence), "\(run.transcript)")
    }

    @Test func `the level can't be changed without a proxy, and the command says so`() async throws {
        let run = try await RunningProxy.run(["log-level", "debug", "--socket", "/nowhere"])
        #expect(run.ending == .exited(1))
        #expect(run.errors.contains("no running proxy answers"))
    }

    /// A proxy's output on a terminal when its port is taken.
    private func shown(_ log: String, environment: [String: String?]) async throws -> String {
        let folder = try TemporaryDirectory()
        let file = try folder.write("proxy: {listen: \"127.0.0.1:\(origin.port)\"}\n\(log)", to: "config.yaml")
        let run = try await ChildProcess.run(
            [
                try Repository.python(), "\(Repository.root)/Tests/EndToEndTests/Fixtures/terminal.py", "[]",
                try Repository.executable(), "serve", "--config", file,
            ], environment: environment)
        #expect(run.output.contains("the proxy stopped"), "\(run.transcript)")
        return run.output
    }

    @Test func `the log on a terminal has colours`() async throws {
        let text = try await shown("", environment: ["NO_COLOR": nil, "TERM": "xterm"])
        #expect(text.contains("\u{1B}[1;31merror\u{1B}[0m the proxy stopped"), "\(text)")
    }

    @Test(arguments: [
        ("", ["NO_COLOR": "1", "TERM": "xterm"]), ("", ["NO_COLOR": "", "TERM": "dumb"]),
        ("log: {format: json}", ["NO_COLOR": "", "TERM": "xterm"]),
    ])
    func `the log on a terminal has no colours that were not wanted`(log: String, environment: [String: String])
        async throws
    {
        #expect(try await !shown(log, environment: environment).contains("\u{1B}"))
    }

    @Test func `the log in a pipe or a file has no colours`() async throws {
        #expect(try await command("debug", "--for", "1m").ending == .exited(0))
        #expect(!proxy.log.contains("\u{1B}"))
    }
}
