import Foundation
import TestSupport
import Testing

@Suite("lines and results that nobody took are not called written", .timeLimit(.minutes(3)))
struct OutputTests {
    /// A proxy on Unix sockets, whose standard descriptors a shell has redirected.
    private final class RedirectedProxy: Sendable {
        let directory: TemporaryDirectory
        let process: ChildProcess
        private let origin: RecordingOrigin
        private let endpoint: TokenEndpoint

        /// - Parameters:
        ///   - redirection: of a shell. `FOLDER` stands for the proxy's folder.
        ///   - before: a script that runs before, in a mount namespace of the proxy, if there is one.
        init(_ redirection: String, before: String? = nil) async throws {
            directory = try TemporaryDirectory()
            origin = try RecordingOrigin()
            endpoint = try .plain()
            try directory.write(clientSecret, to: "secret")
            let text = ProxyConfiguration(
                tokenEndpoint: endpoint.url, proxy: "listen: unix:FOLDER/h.sock", admin: "",
                upstreams: ProxyConfiguration.upstream(url: origin.url), more: "audit: stderr"
            ).text
            let folder = directory.path
            let file = try directory.write(text.replacing("FOLDER", with: folder), to: "config.yaml")
            let script =
                "\(before.map { $0 + " && " } ?? "")exec '\(try Repository.executable())' serve --config \(file) \(redirection)"
            process = try ChildProcess(
                (before == nil ? [] : ["unshare", "--mount"])
                    + ["sh", "-c", script.replacing("FOLDER", with: folder)])
            try await eventually("it serves", within: .seconds(30)) {
                if process.ending != nil { throw TestFailure(process.transcript) }
                return try await get() == 200
            }
        }

        private func exchange(_ socket: String, _ target: String, host: String) async throws -> RawResponse? {
            guard let client = try? await RawClient.connect(unix: directory.path(of: socket)) else { return nil }
            try await client.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n")
            return try await client.response()
        }

        func get() async throws -> Int? { try await exchange("h.sock", "http://api.test/", host: "api.test")?.status }

        /// Numbers of lines of the log and of the audit stream: `heimdallr_log_lines_total`, `…audit…`.
        func count(_ stream: String, _ result: String) async throws -> Int? {
            let page = try await exchange("admin.sock", "/metrics", host: "localhost")?.text ?? ""
            let name = "heimdallr_\(stream)_lines_total{result=\"\(result)\"} "
            return page.split(separator: "\n").first { $0.hasPrefix(name) }.flatMap { Int($0.dropFirst(name.count)) }
        }
    }

    @Test(arguments: ["2>/dev/full", "2>&-"])
    func `lines that standard error did not take are dropped, in the log and in the audit stream`(
        redirection: String
    ) async throws {
        let proxy = try await RedirectedProxy(redirection)
        for _ in 0..<19 { #expect(try await proxy.get() == 200) }
        try await eventually("all are dropped") { try await proxy.count("audit", "dropped") == 20 }
        #expect(try await proxy.count("audit", "written") == 0)
        #expect(try await proxy.count("log", "written") == 0)
        #expect(try await proxy.count("log", "dropped") ?? 0 >= 20)
        #expect(try await proxy.process.stop() == .exited(0))
    }

    @Test func `lines for a reader that has gone are dropped`() async throws {
        let proxy = try await RedirectedProxy(" 2>FOLDER/pipe", before: "mkfifo FOLDER/pipe && { true <FOLDER/pipe & }")
        for _ in 0..<19 { #expect(try await proxy.get() == 200) }
        try await eventually("all are dropped") { try await proxy.count("audit", "dropped") == 20 }
        #expect(try await proxy.count("audit", "written") == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `on a full disk each line is whole or counted, and the next one begins a line`() async throws {
        let proxy = try await RedirectedProxy(
            "2>FOLDER/disk/err",
            before: "mkdir FOLDER/disk && mount -t tmpfs -o size=256k log FOLDER/disk && "
                + "head -c 229376 /dev/zero >FOLDER/disk/filler")
        let disk = "/proc/\(proxy.process.pid)/root\(proxy.directory.path)/disk/"
        @Sendable func lines() throws -> [String] {
            try String(contentsOfFile: disk + "err", encoding: .utf8).split(separator: "\n").map(String.init)
        }
        var sent = 1
        while true {
            #expect(try await proxy.get() == 200)
            sent += 1
            try #require(sent < 2000)
            if try await proxy.count("audit", "dropped") != 0, try await proxy.count("log", "dropped") != 0 { break }
        }
        try FileManager.default.removeItem(atPath: disk + "filler")
        try await eventually("lines that are missing are reported") {
            _ = try await proxy.get()
            let lines = try lines()
            return lines.contains { $0.contains(" log lines dropped count=") && $0.contains("No space left on device") }
                && lines.contains { $0.contains("\"audit\":\"dropped\"") }
        }
        _ = try await settled("the lines") { try lines() }
        let all = try lines()
        let audit = all.filter {
            $0.hasPrefix("{\"time\":") && $0.hasSuffix("}") && !$0.contains("\"audit\":\"dropped\"")
        }
        #expect(try await proxy.count("audit", "written") == audit.count)
        #expect(try await proxy.count("audit", "dropped") ?? 0 >= sent - audit.count)
        // A line that was cut is a line alone.
        let glued = all.filter { $0.dropFirst().contains("{\"time\":") || $0.split(separator: " info ").count > 2 }
        #expect(glued.isEmpty)
    }

    @Test func `without standard descriptors the log goes nowhere, not into a socket`() async throws {
        let proxy = try await RedirectedProxy("0<&- 1>&- 2>&-")
        let folder = "/proc/\(proxy.process.pid)/fd/"
        for number in 0...2 {
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder + "\(number)") == "/dev/null")
        }
        #expect(try await proxy.process.stop() == .exited(0))
    }

    // MARK: Commands

    @Test(arguments: [
        ["--version"], ["--help"], ["config", "schema"], ["keygen"], ["check", "--config", "FILE"],
        ["check", "--json", "--config", "FILE"], ["doctor", "--config", "FILE"], ["store", "init", "--sql"],
        ["status", "--socket", "ADMIN"], ["status", "--json", "--socket", "ADMIN"],
        ["refresh", "api", "--socket", "ADMIN"],
        ["token", "api", "--socket", "ADMIN"], ["why", "GET", "http://api.test/", "--socket", "ADMIN"], ["demo"],
        ["log-level", "--socket", "ADMIN"], ["health", "--config", "FILE"], ["reload", "--config", "FILE"],
    ])
    func `a command whose output can't be written fails, and says so`(words: [String]) async throws {
        let proxy = try await RunningProxy(to: RecordingOrigin(), client: "exportable: true", admin: "")
        let words = words.map {
            $0 == "FILE"
                ? proxy.directory.path + "/config.yaml" : $0 == "ADMIN" ? proxy.directory.path + "/admin.sock" : $0
        }
        let command = [try Repository.executable()] + words
        for (redirection, reason) in [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")] {
            let run = try await ChildProcess.run(["sh", "-c", "exec \"$@\" \(redirection)", "sh"] + command)
            #expect(run.ending == .exited(1), "\(run.transcript)")
            #expect(
                run.errors.hasSuffix("error: standard output can't be written: \(reason)\n"), "\(run.transcript)")
        }
    }
}
