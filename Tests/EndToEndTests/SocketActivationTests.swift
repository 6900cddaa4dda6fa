import Foundation
import TestSupport
import Testing

@Suite("sockets that the proxy is given when it starts", .timeLimit(.minutes(3)))
struct SocketActivationTests {
    private static func activate(_ sockets: String...) -> [String] {
        ["python3", Repository.fixture("activate.py")] + sockets + ["--"]
    }

    /// Starts it, and waits until it ends.
    private static func start(_ configuration: String, verb: String = "serve", _ sockets: [String]) async throws
        -> ChildProcess
    {
        let directory = try TemporaryDirectory()
        let file = try directory.write(configuration.replacing("FOLDER", with: directory.path), to: "c.yaml")
        let here = sockets.map { $0.replacing("FOLDER", with: directory.path) }
        return try await ChildProcess.run(
            ["python3", Repository.fixture("activate.py")] + here
                + ["--", try Repository.executable(), verb, "--config", file], within: .seconds(20))
    }

    private static let upstreams = "upstreams: [{host: a.example.com}]"

    @Test func `passed sockets of each kind become the listeners that have their addresses`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let ports = try (0..<4).map { _ in try freePort() }
        let sockets = try TemporaryDirectory()
        let proxy = try await RunningProxy(
            to: origin,
            proxy: """
                listen: ["127.0.0.1:\(ports[0])", "[::1]:\(ports[1])", "unix:\(sockets.path)/p.sock"]
                """,
            upstream: "listen: 127.0.0.1:\(ports[2])",
            admin: "listen: 127.0.0.1:\(ports[3])\nsocket: \(sockets.path)/a.sock", listeners: 4,
            under: Self.activate(
                "unix:\(sockets.path)/a.sock", "127.0.0.1:\(ports[3])", "127.0.0.1:\(ports[2])",
                "unix:\(sockets.path)/p.sock", "[::1]:\(ports[1])", "127.0.0.1:\(ports[0])"))
        #expect(proxy.listeners.map(\.port).prefix(2) == ports.prefix(2))
        #expect(try await proxy.get("http://api.test/").status == 200)
        let direct = "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        #expect(try await RawClient.exchange(port: ports[2], direct).text == "ok")
        for arguments in [
            ["--unix-socket", "\(sockets.path)/p.sock", "http://api.test/"],
            ["-x", "http://[::1]:\(ports[1])", "http://api.test/"],
        ] {
            #expect(try await ChildProcess.output(of: ["curl", "-sS"] + arguments) == "ok")
        }
        #expect(try await RawClient.exchange(port: ports[3], direct.replacing("/x", with: "/livez")).status == 200)
        let status = try await RunningProxy.run(["status", "--exit-zero", "--socket", "\(sockets.path)/a.sock"])
        #expect(status.ending == .exited(0), "\(status.transcript)")
        #expect(try await proxy.terminate() == .exited(0))
        // They are whose who made them.
        for name in ["p.sock", "a.sock"] { #expect(FileManager.default.fileExists(atPath: "\(sockets.path)/\(name)")) }
    }

    @Test func `connections at a passed socket wait for the next proxy when one has ended`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let port = try freePort()
        let script = try TemporaryDirectory()
        // The shell holds descriptor 3 while two proxies come and go.
        let endpoint = try TokenEndpoint.plain()
        let configuration = ProxyConfiguration(
            listen: port, tokenEndpoint: endpoint.url, upstreams: ProxyConfiguration.upstream(url: origin.url))
        for (name, text) in configuration.files { try script.write(text, to: name) }
        let file = try script.write(configuration.text.replacing("FOLDER", with: script.path), to: "c.yaml")
        let shell = try ChildProcess(
            Self.activate("127.0.0.1:\(port)") + [
                "sh", "-c",
                """
                for turn in 1 2; do
                  LISTEN_PID= sh -c 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"' sh \
                \(try Repository.executable()) serve --config \(file) &
                  echo "$!" && wait "$!" && sleep 0.5
                done
                """,
            ])
        func pid(_ turn: Int) async throws -> Int32 {
            try await eventually("proxy \(turn) runs") {
                if shell.ending != nil { throw TestFailure(shell.transcript) }
                guard shell.errors.components(separatedBy: " listening ").count > turn else { return nil }
                return shell.output.split(separator: "\n").dropFirst(turn - 1).first.flatMap { Int32($0) }
            }
        }
        let request = "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"
        let first = try await pid(1)
        #expect(try await RawClient.exchange(port: port, request).text == "ok")
        kill(first, SIGTERM)
        try await eventually("the first one is gone") { kill(first, 0) != 0 }
        // No process accepts, and no connection is refused.
        #expect(try await RawClient.exchange(port: port, request).text == "ok")
        kill(try await pid(2), SIGTERM)
        #expect(try await shell.ended() == .exited(0))
    }

    @Test func `passed sockets go by their names where the configuration can't know the address`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let (first, second) = (try freePort(), try freePort())
        let proxy = try await RunningProxy(
            to: origin, upstream: "listen: 127.0.0.1:0", listeners: 2,
            under: Self.activate("api.test=127.0.0.1:\(second)", "proxy=127.0.0.1:\(first)"))
        #expect(proxy.listeners.map(\.port) == [first, second])
    }

    @Test(arguments: ["serve", "check"])
    func `a passed socket that no listener fits is an error`(verb: String) async throws {
        let (port, other) = (try freePort(), try freePort())
        let run = try await Self.start(
            "proxy: {listen: \"127.0.0.1:\(port)\"}\n" + Self.upstreams, verb: verb,
            ["127.0.0.1:\(port)", "web=127.0.0.1:\(other)"])
        #expect(run.ending == .exited(78), "\(run.transcript)")
        #expect(
            run.errors.contains(
                "error: LISTEN_FDS: 127.0.0.1:\(other) (descriptor 4, FileDescriptorName=web) is passed, and nothing in "
                    + "the configuration listens there: write it as `listen` into proxy, an upstream or admin, or take its "
                    + "ListenStream= out of the socket unit"), "\(run.errors)")
    }

    /// Useless sockets, and the reasons.
    @Test(arguments: [
        ("udp", "it is no stream socket"), ("pipe", "it is no socket"), ("closed", "it is no"),
        ("connected", "it does not listen"), ("abstract", "it is an abstract Unix socket"),
    ])
    func `a passed descriptor of the wrong kind is an error with the reason`(what: String, reason: String) async throws
    {
        let run = try await Self.start(Self.upstreams, [what])
        #expect(run.ending == .exited(78), "\(run.transcript)")
        #expect(
            run.errors.contains("descriptor 3 (FileDescriptorName=unknown) can't be used: \(reason)"), "\(run.errors)")
    }

    @Test func `a passed socket may let in no more than the configuration does`() async throws {
        for (mode, words, code) in [("666", "mode 0666", Int32(78)), ("640", "", 0)] {
            let run = try await Self.start(
                "proxy: {listen: \"unix:FOLDER/p.sock\"}\n" + Self.upstreams, verb: "check",
                ["unix:\(mode):FOLDER/p.sock"])
            #expect(run.ending == .exited(code), "\(run.transcript)")
            #expect(words.isEmpty || run.errors.contains(words), "\(run.errors)")
            #expect(words.isEmpty || run.errors.contains("write SocketMode=0600 into the socket unit"), "\(run.errors)")
        }
        // A socket for all addresses of the machine is not loopback, also when systemd made it.
        let port = try freePort()
        let run = try await Self.start(
            "proxy: {listen: \"127.0.0.1:\(port)\"}\n" + Self.upstreams, ["0.0.0.0:\(port)"])
        #expect(run.ending == .exited(78), "\(run.transcript)")
        let open = try await Self.start(
            "proxy: {listen: \"0.0.0.0:\(port)\"}\n" + Self.upstreams, ["0.0.0.0:\(port)"])
        #expect(open.ending == .exited(78), "\(open.transcript)")
        #expect(open.errors.contains("open: true"), "\(open.errors)")
    }

    @Test func `sockets passed to another process are not taken, and no child inherits them`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let (unused, other) = (try freePort(), try freePort())
        let proxy = try await RunningProxy(
            to: origin, proxy: "listen: 127.0.0.1:\(other)",
            environment: ["LISTEN_PID": "1"], under: Self.activate("127.0.0.1:\(unused)"))
        #expect(proxy.port == other)

        // The first one still has the other sockets.
        let port = try freePort()
        let folder = try TemporaryDirectory()
        let named = try await RunningProxy(
            ProxyConfiguration(
                listen: port,
                clients: [
                    ProxyConfiguration.client(
                        tokenEndpoint: "http://127.0.0.1:9/",
                        """
                        client_id: x
                        client_secret: {command: [sh, -c, "env >\(folder.path)/env; ls /proc/self/fd >\(folder.path)/fds; echo s"]}
                        """)
                ], upstreams: [ProxyConfiguration.upstream(url: origin.url)]),
            under: ["env", "LISTEN_PID="] + Self.activate("127.0.0.1:\(port)").dropLast() + ["--", "sh", "-c"] + [
                "LISTEN_PID=$$ NOTIFY_SOCKET=/nowhere WATCHDOG_USEC=1 exec \"$@\"", "sh",
            ])
        let environment = try await eventually("the command has run") {
            try? String(contentsOfFile: "\(folder.path)/env", encoding: .utf8)
        }
        #expect(named.port == port)
        for name in ["LISTEN_", "NOTIFY_SOCKET", "WATCHDOG_USEC"] { #expect(!environment.contains(name)) }
    }

    @Test func `passed sockets outlive changes of the configuration, which can't lose them`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let port = try freePort()
        let proxy = try await RunningProxy(
            to: origin, proxy: "listen: 127.0.0.1:\(port)", admin: "",
            under: Self.activate("127.0.0.1:\(port)"))
        let file = proxy.directory.path + "/config.yaml"
        let text = try String(contentsOfFile: file, encoding: .utf8)
        func reload(_ text: String) async throws -> ChildProcess {
            try proxy.directory.write(text, to: "config.yaml")
            return try await RunningProxy.run(["reload", "--socket", proxy.directory.path + "/admin.sock"])
        }
        // As another one's, and as another word for the same place.
        for place in ["localhost:\(port)", "127.0.0.1:\(port)"] {
            let reloaded = try await reload(
                text.replacing("listen: 127.0.0.1:\(port)", with: "listen: \(place)\n  max_connections: 99"))
            #expect(reloaded.ending == .exited(0), "\(reloaded.transcript)")
            #expect(try await proxy.get("http://api.test/").status == 200)
        }
        let lost = try await reload(text.replacing("listen: 127.0.0.1:\(port)", with: "listen: 127.0.0.1:0"))
        #expect(lost.ending != .exited(0))
        #expect(lost.errors.contains("127.0.0.1:\(port)"), "\(lost.transcript)")
        #expect(try await proxy.get("http://api.test/").status == 200)
    }

    @Test func `the service manager hears of start, readiness, reload and end`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let folder = try TemporaryDirectory()
        let port = try freePort()
        let proxy = try await RunningProxy(
            to: origin, proxy: "listen: 127.0.0.1:\(port)",
            under: [
                "python3", Repository.fixture("activate.py"), "--notify", "\(folder.path)/said", "127.0.0.1:\(port)",
            ]
                + ["--", "env", "WATCHDOG_USEC=200000"])
        @Sendable func said() -> [String] {
            let text = (try? String(contentsOfFile: "\(folder.path)/said", encoding: .utf8)) ?? ""
            return text.split(separator: "\n").map(String.init)
        }
        try await eventually("ready and alive") {
            said().contains("READY=1 | STATUS=Listening on 127.0.0.1:\(port)")
                && said().count { $0 == "WATCHDOG=1" } > 2
        }
        proxy.process.signal(SIGHUP)
        try await eventually("it has read again") {
            guard let index = said().firstIndex(where: { $0.hasPrefix("RELOADING=1 | MONOTONIC_USEC=") }) else {
                return false
            }
            return said()[index...].contains { $0.hasPrefix("READY=1 | ") }
        }
        #expect(try await proxy.terminate() == .exited(0))
        try await eventually("stopping") { said().contains { $0.hasPrefix("STOPPING=1") } }
    }
}
