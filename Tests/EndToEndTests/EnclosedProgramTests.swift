import Foundation
import TestSupport
import Testing

/// Whether this machine has namespaces for users. Elsewhere, `exec --enclose` refuses, which has tests of its own.
private let hasNamespaces = Namespaces.work(["--user", "--net", "--mount", "true"])

@Suite("exec --enclose: a program that can't go around the proxy", .enabled(if: hasNamespaces), .timeLimit(.minutes(5)))
struct EnclosedProgramTests {
    private let directory: TemporaryDirectory
    private let endpoint: TokenEndpoint

    init() throws {
        directory = try TemporaryDirectory()
        endpoint = try .plain()
    }

    /// Without the variables that lead to the proxy; those of trust stay.
    private static let without =
        ["env"]
        + InterceptedProgram.clean.keys.filter { $0.lowercased().hasSuffix("_proxy") }
        .sorted().flatMap { ["-u", $0] } + ["-u", "NODE_USE_ENV_PROXY"]

    private var environment: [String: String?] {
        InterceptedProgram.clean.merging(["XDG_RUNTIME_DIR": directory.path(of: "run")]) { $1 }
    }

    private func configuration(
        to url: String, host: String = "api.test", upstream: String = "", proxy: String = "", listen: UInt16 = 1,
        admin: String? = nil
    ) throws -> String {
        try directory.write(clientSecret, to: "secret")
        let text = ProxyConfiguration(
            listen: listen, tokenEndpoint: endpoint.url, proxy: proxy, admin: admin,
            upstreams: ProxyConfiguration.upstream(host, url: url, upstream)
        ).text
        return try directory.write(text.replacing("FOLDER", with: directory.path), to: "config.yaml")
    }

    private func exec(
        _ file: String, _ options: [String] = ["--serve"], program: String? = nil
    ) throws -> [String] {
        [try program ?? Repository.executable(), "exec", "--enclose"] + options + ["--config", file, "--"]
    }

    private func set(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private func run(_ command: [String]) async throws -> ChildProcess {
        try await ChildProcess.run(command, environment: environment, within: .seconds(150))
    }

    // MARK: Programs

    /// Programs that find the proxy only because nothing else answers: those of Java without the properties for proxies,
    /// and the machine's Node, which knows no variables.
    private static let programs =
        InterceptedProgram.all.filter { !$0.name.hasPrefix("Java") && $0.name != "an older Node" }
        + ["HttpClient", "HttpURLConnection"].map {
            InterceptedProgram.java($0, properties: ["-Dhttp.proxyHost=", "-Dhttps.proxyHost="])
        }
        + [InterceptedProgram(name: "an older Node") { url, _ in ["node", fixture("fetch/fetch.js"), "https", url] }]

    @Test(arguments: Self.programs)
    func `an enclosed program without variables gets its token for https`(program: InterceptedProgram) async throws {
        let origin = try await SecureOrigin(packages: ["apt", "pip"].contains(program.name))
        let file = try configuration(to: origin.url, upstream: "intercept: true\n" + origin.trust)
        let command = try program.command("https://api.test\(program.target)", directory)
        let run = try await run(exec(file) + Self.without + command)
        #expect(run.ending == .exited(0) && run.output.contains(program.says), "\(run.transcript)")
        let requests = origin.recording.requests
        #expect(!requests.isEmpty && requests.allSatisfy { $0.values("Authorization") == ["Bearer \(token)"] })
        #expect(requests.allSatisfy { $0.target.hasPrefix(program.target) })
    }

    @Test(arguments: [
        ["curl", "-sS", "--fail"], ["wget", "-qO-", "--tries=1"], ["env", "-i", "/usr/bin/curl", "-sS"],
    ])
    func `an enclosed program without any variable gets its token for http`(program: [String]) async throws {
        let origin = try RecordingOrigin()
        let file = try configuration(to: origin.url)
        let run = try await run(exec(file) + Self.without + program + ["http://api.test/x"])
        #expect(run.ending == .exited(0) && run.output == "ok", "\(run.transcript)")
        #expect(origin.requests.map { $0.values("Authorization") } == [["Bearer \(TokenEndpoint.plainToken)"]])
    }

    /// HttpClient asks for HTTP/2 by Upgrade first.
    @Test(arguments: ["HttpClient", "HttpURLConnection"])
    func `an enclosed program of Java without properties gets its token for http`(library: String) async throws {
        let origin = try RecordingOrigin()
        let file = try configuration(to: origin.url)
        let program = InterceptedProgram.java(library, properties: ["-Dhttp.proxyHost="])
        let run = try await run(exec(file) + Self.without + program.command("http://api.test/x", directory))
        #expect(run.ending == .exited(0) && run.output == "ok\n", "\(run.transcript)")
        #expect(origin.requests.map { $0.values("Authorization") } == [["Bearer \(TokenEndpoint.plainToken)"]])
    }

    @Test(arguments: ["tls calls.test:443", "plain calls.test:80", "plain calls.test:50051"])
    func `an enclosed program of gRPC gets its token`(call: String) async throws {
        let server = try ChildProcess([try Repository.python(), Repository.fixture("grpc_server.py")])
        let host = call.hasSuffix(":50051") ? "calls.test:50051" : "calls.test"
        let file = try await configuration(
            to: "http://127.0.0.1:\(server.printedPort())", host: host,
            upstream: call.hasPrefix("tls") ? "intercept: true\n" : "")
        let program = try [Repository.python(), fixture("grpc_call.py")] + call.split(separator: " ").map(String.init)
        let run = try await run(exec(file) + Self.without + program)
        #expect(run.output == "hello Bearer \(TokenEndpoint.plainToken)\n", "\(run.transcript)")
    }

    @Test func `another user's enclosed program gets its token, and is the same user inside`() async throws {
        let origin = try RecordingOrigin()
        // The user must reach the files.
        try set(0o755, directory.path)
        let program = directory.path(of: "heimdallr-proxy")
        try await ChildProcess.output(of: ["cp", Repository.executable(), program])
        let file = try configuration(to: origin.url)
        for name in ["secret", "config.yaml"] { try set(0o644, directory.path(of: name)) }
        let user = ["setpriv", "--reuid=1234", "--regid=2345", "--clear-groups", "env", "HOME=/nonexistent"]
        let command = Self.without + ["sh", "-c", "id -u; id -g; curl -sS http://api.test/x; umask"]
        let run = try await run(user + exec(file, program: program) + command)
        #expect(run.output == "1234\n2345\nok0022\n", "\(run.transcript)")
        #expect(origin.requests.count == 1)
    }

    @Test func `an enclosed program is refused hosts that no upstream names, with the reason`() async throws {
        let origin = try RecordingOrigin()
        let file = try configuration(to: origin.url)
        let script = """
            curl -sS http://evil.test/; echo; curl -sS http://192.0.2.7/; echo; curl -sS 'http://[2001:db8::7]/'; echo
            curl -sS https://evil.test/ || echo "rc=$?"; curl -sS -H 'Host: api.test' http://other.test/
            """
        let run = try await run(exec(file) + Self.without + ["sh", "-c", script])
        let lines = run.output.split(separator: "\n")
        #expect(lines.count == 5, "\(run.transcript)")
        for (line, host) in zip(lines, ["evil.test:80", "192.0.2.7:80", "[2001:db8::7]:80"]) {
            #expect(line.contains("The configuration names no upstream for \(host)"), "\(line)")
        }
        #expect(lines.dropFirst(3).first == "rc=35")
        #expect(lines.last?.contains("names another host than the one that was dialled") == true, "\(run.transcript)")
        #expect(run.errors.contains("evil.test:443"), "\(run.transcript)")
        #expect(origin.requests.isEmpty)
    }

    @Test func `a name has one address for an enclosed run, and no name is looked up outside`() async throws {
        let file = try configuration(to: RecordingOrigin().url)
        let script = """
            getent ahostsv4 one.test | head -1; getent ahostsv4 two.test | head -1; getent ahostsv4 one.test | head -1
            getent ahostsv4 localhost | head -1
            """
        let run = try await run(exec(file) + ["sh", "-c", script])
        let addresses = run.output.split(separator: "\n").map { $0.prefix { $0 != " " } }
        #expect(
            addresses == ["198.18.0.1", "198.18.0.2", "198.18.0.1", "127.0.0.1"],
            "\(run.transcript)")
    }

    // MARK: --allow

    @Test func `an allowed address is reached as it is, and its server may speak first`() async throws {
        let origin = try RecordingOrigin()
        let server = try ChildProcess([
            "python3", "-c",
            """
            import socket
            server = socket.create_server(("127.0.0.1", 0))
            print(server.getsockname()[1], flush=True)
            while True:
                one, _ = server.accept()
                one.sendall(b"server speaks\\n")
                one.sendall(one.recv(100))
                one.close()
            """,
        ])
        let port = try await eventually("it listens") { UInt16(server.output.trimmingCharacters(in: .newlines)) }
        let file = try configuration(to: origin.url)
        let script = """
            import socket
            for host in ("127.0.0.1", "localhost"):
                with socket.create_connection((host, \(port))) as one:
                    text = one.recv(14)
                    one.sendall(b"echo\\n")
                    while part := one.recv(100):
                        text += part
                    print(text)
            """
        let run = try await run(
            exec(file, ["--serve", "--allow", "127.0.0.1:\(port)", "--allow", "localhost:\(port)"])
                + ["python3", "-c", script])
        #expect(run.output == String(repeating: "b'server speaks\\necho\\n'\n", count: 2), "\(run.transcript)")
        let refused = try await self.run(exec(file) + ["python3", "-c", script])
        #expect(refused.errors.contains("Connection refused"), "\(refused.transcript)")
        for address in ["db.test", "0.0.0.0:5432", "[::]:5432", "[::ffff:127.0.0.1]:5432", "127.0.0.1:80"] {
            let wrong = try await self.run(exec(file, ["--serve", "--allow", address]) + ["true"])
            #expect(wrong.ending == .exited(2) && wrong.errors.contains("HOST:PORT"), "\(wrong.transcript)")
        }
    }

    // MARK: Escapes

    @Test(arguments: [true, false])
    func `an enclosed program finds no way out`(asRoot: Bool) async throws {
        let outside = try RecordingOrigin()
        try set(0o755, directory.path)
        let program = directory.path(of: "heimdallr-proxy")
        try await ChildProcess.output(of: ["cp", Repository.executable(), program])
        let run = directory.path(of: "run")
        try FileManager.default.createDirectory(atPath: run, withIntermediateDirectories: false)
        let file = try configuration(to: outside.url, admin: "socket: \(run)/admin.sock")
        let attempts = directory.path(of: "attempts.py")
        try FileManager.default.copyItem(atPath: fixture("enclosure_escapes.py"), toPath: attempts)
        for name in ["secret", "config.yaml", "attempts.py"] { try set(0o644, directory.path(of: name)) }
        var user: [String] = []
        if !asRoot {
            user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/nonexistent"]
            try FileManager.default.setAttributes(
                [.ownerAccountID: 65534, .groupOwnerAccountID: 65534], ofItemAtPath: run)
        }
        // 6 is the folder of the secret, 7 a socket of outside, 8 a pipe, 9 an event.
        let wrapper = """
            import os, socket, sys
            one, two, three = socket.socket(), os.pipe()[0], os.eventfd(0)
            os.dup2(os.open(sys.argv[1], os.O_RDONLY), 6); os.dup2(one.fileno(), 7); os.dup2(two, 8); os.dup2(three, 9)
            os.execvp(sys.argv[2], sys.argv[2:])
            """
        let result = try await self.run(
            user + ["python3", "-c", wrapper, directory.path] + exec(file, program: program)
                + ["python3", attempts, "\(outside.port)", "\(run)/admin.sock", directory.path(of: "secret")])
        let outcomes = result.output.split(separator: "\n").map(String.init)
        #expect(outcomes == Self.outcomes, "\(result.transcript)")
        #expect(outside.connections.isEmpty)
    }

    private static let outcomes = [
        "tcp, another port: ENETUNREACH", "tcp6, another port: ENETUNREACH", "udp 443: ENETUNREACH",
        "udp ntp: ENETUNREACH", "127.0.0.1 outside: ECONNREFUSED", "vsock: EAFNOSUPPORT", "raw: EPERM",
        "ping: EACCES", "packet: EPERM", "bluetooth: EAFNOSUPPORT", "unix: open", "io_uring: ENOSYS", "x32: ENOSYS",
        "keys: ENOSYS",
        "typing: EPERM", "unmount: EPERM", "port 80: EACCES", "own server: done", "admin socket: ENOENT",
        "secret: 0 bytes", "launcher's memory: EACCES", "launcher's variables: EACCES", "launcher's root: EACCES",
        "resolv.conf: nameserver 127.0.0.1", "capabilities: 0000000000000000", "bounding set: 0000000000000000",
        "no new privileges: 1", "nested: True", "inherited: ['8']",
    ]

    @Test func `what outlives an enclosed program is refused at once, at every address`() async throws {
        let file = try configuration(to: RecordingOrigin().url)
        let (outcomes, script) = (directory.path(of: "outcomes"), fixture("enclosure_survivor.py"))
        let run = try await run(
            exec(file, ["--serve", "--allow", "192.0.2.7:5432"])
                + ["sh", "-c", "setsid python3 \(script) >\(outcomes) 2>&1 </dev/null &"])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        let lines = try await eventually("the program that is left ends", within: .seconds(120)) {
            let lines = ((try? String(contentsOfFile: outcomes, encoding: .utf8)) ?? "").split(separator: "\n")
            return lines.last == "all" ? lines.dropLast() : nil
        }
        #expect(lines.count == 21 && lines.allSatisfy { $0.hasSuffix(": ECONNREFUSED") }, "\(lines)")
    }

    @Test func `no_proxy leads an enclosed program to the proxy, too`() async throws {
        let origin = try RecordingOrigin()
        let file = try configuration(to: origin.url)
        let environment = environment.merging(["no_proxy": "*,api.test", "NO_PROXY": "*,api.test"]) { $1 }
        let run = try await ChildProcess.run(
            exec(file) + ["curl", "-sS", "http://api.test/x"], environment: environment, within: .seconds(60))
        #expect(run.output == "ok" && !run.errors.contains("no_proxy"), "\(run.transcript)")
        #expect(origin.requests.count == 1)
    }

    /// The program that runs for an hour with 10,000 names also works with some hundreds.
    @Test func `a proxy does not grow with the connections of its enclosed program`() async throws {
        let run = try await ChildProcess.run(
            [
                "python3", "\(Repository.root)/Benchmarks/enclosed", "--binary", try Repository.executable(), "--names",
                "300", "--minutes", "0", "--rounds", "5", "--growth", "16384",
            ], environment: environment, within: .seconds(120))
        #expect(run.ending == .exited(0), "\(run.transcript)")
    }

    // MARK: Refusals

    @Test func `where namespaces are refused, nothing starts, and the cause is named`() async throws {
        let file = try configuration(to: RecordingOrigin().url)
        let none = ["unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"", "sh"]
        let run = try await run(none + exec(file) + ["touch", directory.path(of: "started")])
        #expect(run.ending == .exited(125), "\(run.transcript)")
        #expect(
            run.errors.contains("not started") && run.errors.contains("user.max_user_namespaces"), "\(run.transcript)")
        #expect(!FileManager.default.fileExists(atPath: directory.path(of: "started")))
    }

    @Test func `the exit code of an enclosed program is the command's`() async throws {
        let file = try configuration(to: RecordingOrigin().url)
        #expect(try await run(exec(file) + ["sh", "-c", "exit 3"]).ending == .exited(3))
        #expect(try await run(exec(file) + ["sh", "-c", "kill -9 $$"]).ending == .exited(137))
        let missing = try await run(exec(file) + ["/no/such/program"])
        #expect(missing.ending == .exited(127), "\(missing.transcript)")
        #expect(missing.errors.hasSuffix("error: can't run /no/such/program: No such file or directory\n"))
        #expect(try await run(exec(file) + [directory.path]).ending == .exited(126))
        let input = try await ChildProcess.run(
            exec(file) + ["sh", "-c", "cat; echo wrong >&2"], environment: environment, input: Array("given".utf8))
        #expect(input.output == "given" && input.errors.hasSuffix("wrong\n"), "\(input.transcript)")
    }

    // MARK: A running proxy

    @Test func `a running proxy serves enclosed programs, and gives their sockets back`() async throws {
        let origin = try RecordingOrigin()
        try FileManager.default.createDirectory(
            atPath: directory.path(of: "run"), withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
        let file = try configuration(
            to: origin.url, upstream: "callers: {uids: [\(getuid())]}",
            proxy: "listen: [\"127.0.0.1:0\", \"unix:FOLDER/proxy.sock\"]",
            admin: "socket: \(directory.path)/run/admin.sock")
        let proxy = try ChildProcess([try Repository.executable(), "--config", file], environment: environment)
        try await eventually("the proxy listens") {
            if proxy.ending != nil { throw TestFailure(proxy.transcript) }
            return FileManager.default.fileExists(atPath: directory.path(of: "run/admin.sock.enclose"))
        }
        @Sendable func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.pid)/fd").count
        }
        let before = try descriptors()
        let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.pid)/task").count
        let idle = try ChildProcess([
            "python3", fixture("idle_connections.py"), directory.path(of: "run/admin.sock.enclose"), "400",
        ])
        try await eventually("they are connected") { idle.output == "ready\n" }
        for _ in 0..<3 {
            let run = try await run(exec(file, []) + Self.without + ["curl", "-sS", "http://api.test/x"])
            #expect(run.ending == .exited(0) && run.output == "ok", "\(run.transcript) \(proxy.transcript)")
        }
        #expect(origin.requests.count == 3)
        // A connection without a first message holds no thread.
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.pid)/task").count < threads + 50)
        _ = try await idle.stop()
        // Each program has passed eight sockets. What stays are the proxy's own connections.
        try await eventually("the sockets are given back") { try descriptors() < before + 8 }
        // The program ends before the server of its allowed address does.
        let server = try ChildProcess([
            "python3", "-c",
            """
            import socket, time
            server = socket.create_server(("127.0.0.1", 0))
            print(server.getsockname()[1], flush=True)
            one, _ = server.accept()
            one.sendall(b"hello\\n")
            while one.recv(100):
                pass
            time.sleep(0.3)
            print("ended", flush=True)
            """,
        ])
        let port = try await eventually("it listens") {
            server.output.split(separator: "\n").first.flatMap { UInt16($0) }
        }
        let script = "import socket; print(socket.create_connection(('127.0.0.1', \(port))).recv(9))"
        let reader = try await run(exec(file, ["--allow", "127.0.0.1:\(port)"]) + ["python3", "-c", script])
        #expect(reader.output == "b'hello\\n'\n", "\(reader.transcript)")
        try await eventually("the server ends") { server.output.contains("ended") }
        let missing = try await run(exec(file, []) + ["/no/such/program"])
        #expect(missing.ending == .exited(127), "\(missing.transcript) \(proxy.transcript)")
        // It has no socket for its own proxy inside.
        let inner = try await run(exec(file, []) + exec(file, []) + ["true"])
        #expect(inner.ending != .exited(0), "\(inner.transcript)")
        #expect(try await proxy.stop() == .exited(0), "\(proxy.transcript)")
        let gone = try await run(exec(file, []) + ["true"])
        #expect(gone.ending == .exited(1) && gone.errors.contains("no running proxy"), "\(gone.transcript)")
    }
}
