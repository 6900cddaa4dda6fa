import Foundation
import TestSupport
import Testing

@Suite("exec --serve: a proxy for one program", .timeLimit(.minutes(3)))
struct ServedExecTests {
    private let directory: TemporaryDirectory
    private let origin: RecordingOrigin
    private let endpoint: TokenEndpoint
    private let file: String

    private static let quiet: [String: String?] = ["http_proxy": nil, "no_proxy": nil, "NO_PROXY": nil]

    init() throws {
        directory = try TemporaryDirectory()
        origin = try RecordingOrigin()
        endpoint = try .plain()
        file = try Self.configuration(in: directory, origin, endpoint)
    }

    private static func configuration(
        in directory: TemporaryDirectory, _ origin: RecordingOrigin, _ endpoint: TokenEndpoint, proxy: String = "",
        upstream: String = "", more: String = ""
    ) throws -> String {
        try directory.write(clientSecret, to: "secret")
        let text = ProxyConfiguration(
            listen: 1, tokenEndpoint: endpoint.url, proxy: proxy,
            upstreams: ProxyConfiguration.upstream(url: origin.url, upstream), more: more
        ).text
        return try directory.write(
            text.replacing("FOLDER", with: directory.path), to: "\(UInt32.random(in: 0 ... .max)).yaml")
    }

    private func command(_ file: String, _ options: [String], _ words: [String]) throws -> [String] {
        [try Repository.executable(), "exec", "--serve", "--config", file] + options + ["--"] + words
    }

    private func exec(
        _ words: String..., options: [String] = [], file: String? = nil, environment: [String: String?] = [:]
    ) async throws -> ChildProcess {
        try await ChildProcess.run(
            command(file ?? self.file, options, words), environment: Self.quiet.merging(environment) { $1 })
    }

    /// Starts a program that prints `ready` once it runs.
    private func start(_ script: String, under wrapper: [String] = []) async throws -> ChildProcess {
        let process = try ChildProcess(
            wrapper + command(file, [], ["sh", "-c", script]), environment: Self.quiet)
        try await eventually("the program runs") {
            if process.ending != nil { throw TestFailure(process.transcript) }
            return process.output.contains("ready")
        }
        return process
    }

    // MARK: The program

    @Test func `the program's request carries the token, and nothing is left running`() async throws {
        let run = try await exec("curl", "-sS", "--fail", "http://api.test/x", environment: ["OTHER": "stays"])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output == "ok")
        #expect(run.errors.isEmpty, "\(run.errors)")
        #expect(origin.requests.map { $0.values("Authorization") } == [["Bearer \(TokenEndpoint.plainToken)"]])
        let port = try await exec("sh", "-c", "echo ${http_proxy##*:}").output
        let number = try #require(UInt16(port.trimmingCharacters(in: .newlines)))
        #expect((try? await RawClient.connect(port: number)) == nil)
    }

    @Test("exec --serve ends with a line on what the proxy refused, and its log goes to a file")
    func refusals() async throws {
        let log = directory.path(of: "proxy.log")
        let run = try await exec(
            "sh", "-c", "curl -sS -o /dev/null http://api.test/x; curl -sS -o /dev/null http://evil.test/y",
            options: ["--log-level", "info", "--log-file", log])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        let lines = run.errors.split(separator: "\n")
        #expect(lines.count == 1, "\(run.errors)")
        #expect(run.errors.hasPrefix("heimdallr-proxy: 2 requests, 1 refused: evil.test (no-upstream"))
        #expect(try String(contentsOfFile: log, encoding: .utf8).contains(" listening "))
        let folder = try await exec("true", options: ["--log-file", directory.path])
        #expect(folder.ending == .exited(1))
        #expect(folder.errors.hasPrefix("error: --log-file: "), "\(folder.errors)")
    }

    @Test func `each program under exec --serve has its own proxy`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            gate.wait()
            try exchange.respond(body: exchange.head.target)
        }
        let file = try Self.configuration(in: directory, origin, endpoint)
        async let first = exec("curl", "-sS", "http://api.test/1", file: file)
        async let second = exec("curl", "-sS", "http://api.test/2", file: file)
        try await eventually("both are under way") { origin.requests.count == 2 }
        gate.open()
        #expect(try await [first.output, second.output] == ["/1", "/2"])
    }

    @Test func `the exit code of exec is the program's, or 128 and its signal`() async throws {
        #expect(try await exec("true").ending == .exited(0))
        #expect(try await exec("sh", "-c", "exit 3").ending == .exited(3))
        #expect(try await exec("sh", "-c", "kill -9 $$").ending == .exited(137))
        let missing = try await exec("/no/such/program")
        #expect(missing.ending == .exited(127))
        #expect(missing.errors == "error: can't run /no/such/program: No such file or directory\n")
        #expect(try await exec(directory.path).ending == .exited(126))
    }

    @Test func `the program gets the variables of every program, and nothing of the proxy's`() async throws {
        let status = try await exec("cat", "/proc/self/status")
        for field in ["SigIgn", "SigBlk", "SigCgt"] {
            let line = try #require(status.output.split(separator: "\n").first { $0.hasPrefix(field) })
            let mask = try #require(line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) })
            // 32 and 33 are the C library's own.
            #expect(mask & ~0x1_8000_0000 == 0, "\(line)")
        }
        // A descriptor that was open before stays open, as with exec.
        let wrapper = """
            for path in /proc/$$/fd/*; do number=${path##*/}; [ $number -le 2 ] || eval "exec $number>&-"; done
            exec 150</dev/null; ulimit -Sn 100; exec 7</dev/null; exec "$@"
            """
        let shown = try await ChildProcess.output(
            of: ["bash", "-c", wrapper, "bash"] + command(file, [], ["sh", "-c", "ls /proc/$$/fd; ulimit -Sn"]))
        #expect(shown == "0\n1\n2\n7\n100\n")
        let file = try Self.configuration(in: directory, origin, endpoint, more: "log: {format: \"${THE_FORMAT}\"}")
        let environment = try await exec(
            "env", file: file, environment: ["THE_FORMAT": "text", "HEIMDALLR_X": "withheld", "OTHER": "stays"]
        ).output
        #expect(!environment.contains("THE_FORMAT") && !environment.contains("withheld"))
        #expect(
            environment.contains("OTHER=stays\n") && environment.contains("no_proxy=localhost,127.0.0.1"),
            "\(environment)")
    }

    @Test func `standard input, output and error are the program's`() async throws {
        let run = try await ChildProcess.run(
            command(file, [], ["sh", "-c", "cat; echo wrong >&2"]), input: Array("given".utf8))
        #expect(run.output == "given" && run.errors == "wrong\n", "\(run.transcript)")
    }

    // MARK: Signals

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, 34])
    func `signals go to the program, which decides`(number: Int32) async throws {
        let process = try await start("trap 'echo caught; exit 5' \(number); echo ready; while :; do sleep 0.01; done")
        process.signal(number)
        #expect(try await process.ended() == .exited(5), "\(process.transcript)")
        #expect(process.output == "ready\ncaught\n")
    }

    @Test func `a program without a handler ends by the signal`() async throws {
        let process = try await start("echo ready; exec sleep 100")
        process.signal(SIGTERM)
        #expect(try await process.ended() == .exited(128 + SIGTERM), "\(process.transcript)")
    }

    @Test func `a signal that was ignored stays ignored`() async throws {
        let process = try await start(
            "echo ready; while [ ! -e \(directory.path)/go ]; do sleep 0.01; done; exit 6", under: ["nohup"])
        process.signal(SIGHUP)
        try directory.write("", to: "go")
        #expect(try await process.ended() == .exited(6), "\(process.transcript)")
    }

    /// The keys of a terminal signal both processes. A signal that arrives twice would end a program that only wants to
    /// be asked twice.
    @Test func `Ctrl-C at a terminal reaches the program once`() async throws {
        let script = """
            import os, pty, subprocess, sys, time
            program = ("import signal, sys, time; got = []; signal.signal(signal.SIGINT, lambda *_: got.append(1));"
                       "print('ready', flush=True); line = sys.stdin.readline(); print('line', line.strip(), len(got), flush=True)")
            pid, terminal = pty.fork()
            if pid == 0:
                os.execv(sys.argv[1], sys.argv[1:] + [sys.executable, "-c", program])
            seen = b""
            def read(word):
                global seen
                while word not in seen:
                    seen += os.read(terminal, 1024)
            read(b"ready")
            os.write(terminal, b"\\x03")
            read(b"^C")
            # Time itself: a second signal would have come by now.
            time.sleep(0.2)
            os.write(terminal, b"hello\\n")
            read(b"line hello")
            read(b"line hello 1")
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            """
        let output = try await ChildProcess.output(
            of: [try Repository.python(), "-c", script] + command(file, [], []), environment: Self.quiet)
        #expect(output == "0\n")
    }

    @Test func `the end of the program stops the proxy after the requests under way`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            gate.wait()
            try exchange.respond(body: "late")
        }
        let file = try Self.configuration(in: directory, origin, endpoint)
        let output = directory.path(of: "late")
        // The shell ends before its child does.
        let process = try ChildProcess(
            command(file, [], ["sh", "-c", "curl -sS http://api.test/ >\(output) 2>&1 & sleep 0.1; exit 4"]),
            environment: Self.quiet)
        try await eventually("it is under way") { origin.requests.count == 1 }
        #expect(process.ending == nil)
        gate.open()
        #expect(try await process.ended() == .exited(4), "\(process.transcript)")
        try await eventually("the answer") { try directory.read("late") == "late" }
    }

    @Test func `exec as the first process of a container reaps orphans`() async throws {
        let process = try await start(
            """
            for i in 1 2 3; do sh -c 'sleep 0.01 & exit'; done; echo ready
            for i in $(seq 500); do grep -ls '^State:.Z' /proc/[0-9]*/status >/dev/null || break; sleep 0.01; done
            sleep 0.2; grep -l '^State:.Z' /proc/[0-9]*/status; [ $? = 1 ] && ls -d /proc/1
            """, under: ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"])
        #expect(try await process.ended() == .exited(0), "\(process.transcript)")
        #expect(process.output == "ready\n/proc/1\n")
    }

    @Test func `exec reaps orphans in sessions of their own, too`() async throws {
        let marks = directory.path
        let process = try await start(
            """
            for i in 1 2 3; do sh -c "setsid touch \(marks)/mark$i & exit"; done; echo ready
            until [ -e \(marks)/mark1 -a -e \(marks)/mark2 -a -e \(marks)/mark3 ]; do sleep 0.01; done
            for i in $(seq 1000); do [ "$(cat /proc/1/task/*/children)" = "$$ " ] && exit 5; sleep 0.01; done
            """, under: ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"])
        #expect(try await process.ended() == .exited(5), "\(process.transcript)")
    }

    @Test func `quitquitquit asks the program to end`() async throws {
        let admin = "admin: {listen: \"127.0.0.1:0\", socket: FOLDER/admin.sock, quitquitquit: true}"
        let file = try Self.configuration(in: directory, origin, endpoint, more: admin)
        let quit = "curl -sS -X POST --unix-socket \(directory.path)/admin.sock http://localhost/quitquitquit"
        let run = try await exec("sh", "-c", "\(quit) && sleep 100", file: file)
        #expect(run.ending == .exited(128 + SIGTERM), "\(run.transcript)")
    }

    // MARK: Failures

    @Test func `a proxy that can't start says why, and no program begins`() async throws {
        let mark = directory.path(of: "begun")
        let wrong = try directory.write("upstreams: [{host: a.test, no_such_key: 1}]", to: "wrong.yaml")
        let bad = try await exec("touch", mark, file: wrong)
        #expect(bad.ending == .exited(78) && bad.errors.contains("no_such_key"), "\(bad.transcript)")
        let listener = try RawListener()
        let taken = try Self.configuration(
            in: directory, origin, endpoint, upstream: "listen: 127.0.0.1:\(listener.port)")
        let busy = try await exec("touch", mark, file: taken)
        #expect(busy.ending == .exited(1) && busy.errors.contains("127.0.0.1:\(listener.port)"), "\(busy.transcript)")
        let user = try Self.configuration(
            in: directory, origin, endpoint, proxy: "users: {alice: {file: FOLDER/secret}}")
        #expect(try await exec("touch", mark, file: user).ending == .exited(1))
        #expect(!FileManager.default.fileExists(atPath: mark))
        let named = try await exec(
            "curl", "-sS", "--fail", "http://api.test/", options: ["--user", "alice"], file: user)
        #expect(named.output == "ok", "\(named.transcript)")
    }

    @Test func `a program whose proxy dies sends nothing unsigned`() async throws {
        let process = try await start(
            "echo ready; while [ ! -e \(directory.path)/go ]; do sleep 0.01; done; curl -s http://api.test/; echo $? >\(directory.path)/code"
        )
        process.signal(SIGKILL)
        // Until then its listener may still take a connection, which ends with another code.
        try await eventually("the proxy is gone") { process.ending != nil }
        try directory.write("", to: "go")
        try await eventually("curl's exit code") { (try? directory.read("code")) == "7\n" }
        #expect(origin.requests.isEmpty)
    }

    @Test func `the log is quiet unless it is asked for`() async throws {
        let info = try await exec("curl", "-sS", "http://api.test/", options: ["--log-level", "info"])
        #expect(info.errors.contains(" info listening ") && info.errors.contains(" info request "), "\(info.errors)")
        let wrong = try await exec("true", options: ["--log-level", "loud"])
        #expect(wrong.ending == .exited(2) && wrong.errors.contains("there is no level"), "\(wrong.errors)")
        let alone = try await RunningProxy.run(["exec", "--config", file, "--log-level", "info", "--", "true"])
        #expect(alone.ending == .exited(2) && alone.errors.contains("--serve"), "\(alone.errors)")
    }

    @Test func `rules for the configured listener are for the program's`() async throws {
        let file = try Self.configuration(
            in: directory, origin, endpoint, proxy: "listen: [127.0.0.1:1, 127.0.0.1:2]",
            upstream: "callers: {listeners: [127.0.0.1:1]}")
        #expect(try await exec("curl", "-sS", "http://api.test/", file: file).output == "ok")
    }
}
