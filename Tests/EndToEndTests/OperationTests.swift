import Foundation
import TestSupport
import Testing

@Suite("what operators do to it", .timeLimit(.minutes(2)))
struct OperationTests {
    @Test func `a signal that means nothing makes a log line, and requests go on`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin)
        let others: [(Int32, String)] = [
            (SIGUSR1, "SIGUSR1"), (SIGUSR2, "SIGUSR2"), (SIGALRM, "SIGALRM"), (SIGIO, "SIGIO"),
            (SIGPROF, "SIGPROF"), (SIGVTALRM, "SIGVTALRM"), (SIGPWR, "SIGPWR"), (36, "SIGRTMIN+2"),
        ]
        for (number, name) in others {
            proxy.process.signal(number)
            try await eventually("a line for \(name)") { proxy.log.contains("signal=\(name) ") }
        }
        proxy.process.signal(SIGPIPE)
        proxy.process.signal(SIGXFSZ)
        #expect(try await proxy.get("http://api.test/x").status == 200)
        #expect(proxy.process.ending == nil)
        #expect(try await proxy.terminate() == .exited(0))
    }

    private var setup: String {
        """
        clients:
          api:
            token_endpoint: https://idp.example.com/${REALM}/token
            client_id: x
            client_secret: {env: OUR_SECRET}
            params: {api_key: "${READ_PARAMS}"}
            headers: {X-Api-Key: "Key ${READ_HEADERS}"}
            proxy: http://user:${READ_PROXY}@proxy.example.com:3128
            tls: {ca_file: "${HOME}/ca.pem"}
        upstreams:
          - {host: api.test, client: api}
        """
    }

    @Test func `exec takes away whatever the configuration reads, wherever in a value`() async throws {
        let directory = try TemporaryDirectory()
        let ca = try await PrivateCA()
        try FileManager.default.copyItem(atPath: ca.certificateFile, toPath: directory.path + "/ca.pem")
        let file = try directory.write(setup, to: "config.yaml")
        let environment = [
            "REALM": "withheld-0", "OUR_SECRET": "withheld-1", "READ_PARAMS": "withheld-2",
            "READ_HEADERS": "withheld-3",
            "READ_PROXY": "withheld-4", "HOME": directory.path, "HEIMDALLR_CLIENT_SECRET": "withheld-5",
            "HEIMDALLR_CLIENT_SECRT": "withheld-6", "OTHER": "stays",
        ]
        let run = try await RunningProxy.run(["exec", "--config", file, "--", "env"], environment: environment)
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(!run.output.contains("withheld"))
        #expect(run.output.contains("OTHER=stays"))
        #expect(run.output.contains("HOME=\(directory.path)"))
        #expect(run.output.contains("http_proxy=http://127.0.0.1:8080"))
    }

    /// A configuration that takes something from the environment in every place that can.
    private func reader(_ folder: String, _ more: String = "") -> String {
        """
        proxy:
          listen: 127.0.0.1:${READ_PORT}
          users: {alice: "${READ_USER}", bob: {env: READ_OTHER_USER}}
        admin: {listen: "127.0.0.1:0", socket: "\(folder)/${READ_SOCKET}.sock", token: {env: READ_ADMIN_TOKEN}, hosts: ["${READ_HOSTS}.example"]}
        store: {kind: file, directory: "\(folder)/store", key: {env: READ_STORE_KEY}}
        clients:
          api:
            grant_type: authorization_code
            issuer: https://idp.example.com/${READ_ISSUER}
            client_id: part-${READ_CLIENT_ID}
            client_secret: a${READ_PART_OF_SECRET}b
            scope: ["${READ_SCOPE}"]
            labels: {env: "${READ_LABEL}"}
            params: {env: "${READ_PARAMS}", key: "k ${READ_PARAMS_PART}"}
            headers: {X-Api-Key: "Key ${READ_HEADERS}"}
            proxy: http://user:${READ_PROXY}@proxy.example.com:3128
        upstreams:
          - {host: api.test, client: api, url: "https://api.example.com/${READ_URL}", paths: ["/${READ_PATHS}"], proxy: "http://u:${READ_UPSTREAM_PROXY}@p.example.com:1"}
        \(more)
        """
    }

    private static let read = [
        "READ_PORT", "READ_USER", "READ_OTHER_USER", "READ_SOCKET", "READ_ADMIN_TOKEN", "READ_HOSTS", "READ_STORE_KEY",
        "READ_ISSUER",
        "READ_CLIENT_ID", "READ_PART_OF_SECRET", "READ_SCOPE", "READ_LABEL", "READ_PARAMS", "READ_PARAMS_PART",
        "READ_HEADERS",
        "READ_PROXY", "READ_URL", "READ_PATHS", "READ_UPSTREAM_PROXY",
    ]

    private func readEnvironment(port: UInt16) -> [String: String?] {
        var environment: [String: String?] = ["OTHER": "stays"]
        for name in Self.read { environment[name] = "withheld-\(name.lowercased().replacing("_", with: "-"))" }
        environment["READ_PORT"] = "\(port)"
        environment["READ_STORE_KEY"] = "withheld" + String(repeating: "k", count: 24)
        return environment
    }

    @Test func `exec's program finds nothing of the configuration's secrets, in its memory or the kernel's`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let file = try directory.write(reader(directory.path), to: "config.yaml")
        for command in [["env"], ["cat", "/proc/self/environ"]] {
            // The user that it is to be goes with it, in http_proxy: that is what --user is for.
            let run = try await RunningProxy.run(
                ["exec", "--config", file, "--user", "alice", "--"] + command, environment: readEnvironment(port: 8080))
            #expect(run.ending == .exited(0), "\(run.transcript)")
            let lines = run.output.split { $0 == "\n" || $0 == "\0" }
            #expect(lines.contains("OTHER=stays"))
            for line in lines where !line.lowercased().hasPrefix("http_proxy=") {
                #expect(!line.contains("withheld") && !line.hasPrefix("IN_"), "\(line)")
            }
        }
    }

    @Test func `a hook's program finds nothing of the secrets either, nor does anyone who looks at the process`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let script = try directory.write(
            "import os, time\nopen(\"\(directory.path)/pid\", \"w\").write(f\"{os.getpid()} {dict(os.environ)}\")\n"
                + "time.sleep(20)\n", to: "hook.py")
        let hook = "hooks: {command: [\"\(try Repository.python())\", \"\(script)\", \"${READ_HOOK}\"]}"
        let file = try directory.write(reader(directory.path, hook), to: "config.yaml")
        var environment = readEnvironment(port: try freePort())
        environment["READ_HOOK"] = "withheld-in-hook"
        let proxy = try ChildProcess(
            [try Repository.executable(), "serve", "--config", file], environment: environment)
        let told = try await eventually("the hook runs") {
            if proxy.ending != nil { throw TestFailure(proxy.transcript) }
            let text = try? String(contentsOfFile: "\(directory.path)/pid", encoding: .utf8)
            return text?.hasSuffix("}") == true ? text : nil
        }
        let pid = try #require(told.split(separator: " ").first.flatMap { Int32($0) })
        let kernel = try String(contentsOfFile: "/proc/\(pid)/environ", encoding: .utf8)
        for text in [told, kernel] {
            #expect(text.contains("OTHER"))
            #expect(!text.contains("withheld"), "\(text)")
            for name in Self.read + ["READ_HOOK"] { #expect(!text.contains(name), "\(name)") }
        }
        #expect(try await proxy.stop() == .exited(0), "\(proxy.transcript)")
    }

    @Test func `exec without a file takes every HEIMDALLR_ variable away`() async throws {
        let directory = try TemporaryDirectory()
        let environment = [
            "HEIMDALLR_UPSTREAM": "https://api.example.com", "HEIMDALLR_TOKEN_ENDPOINT": "https://idp.example.com/t",
            "HEIMDALLR_CLIENT_ID": "x", "HEIMDALLR_CLIENT_SECRET": "s", "HEIMDALLR_AUDIENCE": "a",
        ]
        let run = try await RunningProxy.run(
            ["exec", "--", "env"], environment: environment, directory: directory.path)
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(!run.output.contains("HEIMDALLR_"))
    }

    @Test func `exec's program has the signals as every program has them`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            "{proxy: {listen: 127.0.0.1:8080}, upstreams: [{host: a.example.com}]}", to: "c.yaml")
        let run = try await RunningProxy.run(
            ["exec", "--config", file, "--", "cat", "/proc/self/status"])
        for field in ["SigIgn", "SigBlk", "SigCgt"] {
            let line = try #require(run.output.split(separator: "\n").first { $0.hasPrefix(field) })
            let mask = try #require(line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) })
            // 32 and 33 are the C library's own, and those of whoever starts a test's programs.
            #expect(mask & ~0x1_8000_0000 == 0, "\(line)")
        }
    }

    @Test func `a port in use is reported with its number and what to do`() async throws {
        let squatter = try ChildProcess([
            try Repository.python(), "-c",
            "import socket,time; s=[socket.create_server(('127.0.0.1',0)) for _ in range(200)]; "
                + "print(s[0].getsockname()[1],flush=True); time.sleep(100)",
        ])
        let port = try await eventually("a port") { UInt16(squatter.output.trimmingCharacters(in: .newlines)) }
        let directory = try TemporaryDirectory()
        for (section, text) in [
            ("proxy", "proxy: {listen: \"127.0.0.1:\(port)\"}"),
            (
                "admin",
                "proxy: {listen: \"127.0.0.1:0\"}\nadmin: {listen: \"127.0.0.1:\(port)\", socket: \(directory.path)/s}"
            ),
        ] {
            let file = try directory.write("\(text)\nupstreams: [{host: a.example.com}]", to: "c.yaml")
            let run = try await RunningProxy.run(["serve", "--config", file])
            #expect(run.ending == .exited(1), "\(section)")
            #expect(run.errors.contains("127.0.0.1:\(port)"), "\(section) \(run.errors)")
            #expect(
                run.errors.contains(
                    "the address is in use: end the process that listens there, or write another address"),
                "\(section) \(run.errors)")
        }
    }

    @Test func `an unknown command gets the one that was meant`() async throws {
        let run = try await RunningProxy.run(["chek", "--config", "x.yaml"])
        #expect(run.ending == .exited(2))
        #expect(run.errors.contains("did you mean \"check\"?"))
    }

    @Test func `times are numbers in a JSON log`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let directory = try TemporaryDirectory()
        try directory.write(clientSecret, to: "secret")
        let text = ProxyConfiguration(
            tokenEndpoint: endpoint.url, upstreams: ProxyConfiguration.upstream(url: endpoint.url),
            more: "log: {format: json}"
        ).text
        let file = try directory.write(text.replacing("FOLDER", with: directory.path), to: "config.yaml")
        let proxy = try ChildProcess([try Repository.executable(), "serve", "--config", file])
        let line = try await eventually("the token's line") {
            proxy.errors.split(separator: "\n").first { $0.contains("token acquired") }
        }
        let json = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        let seconds = try #require(json?["expires_in"] as? Int)
        #expect((3590...3600).contains(seconds))
        #expect(try await proxy.stop() == .exited(0))
    }

    @Test func `from the first line to the last, a JSON log is JSON`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let directory = try TemporaryDirectory()
        let warned = """
            proxy: {listen: "127.0.0.1:0"}
            admin: {listen: "127.0.0.1:0", socket: \(directory.path)/s}
            log: {format: json}
            clients:
              api: {token_endpoint: "\(endpoint.url)", client_id: x, client_secret: in-the-open, allow_plaintext: true, scope: "a,b"}
            upstreams: [{host: api.test, client: api}]
            """
        try directory.write(warned, to: "warned.yaml")
        try directory.write(warned.replacing("/s}", with: "/s, token: short}"), to: "short.yaml")
        try directory.write(warned.replacing("\(directory.path)/s", with: "/nonexistent/s"), to: "stops.yaml")
        let playground = try String(contentsOfFile: Repository.root + "/config.yaml", encoding: .utf8)
            .replacing("127.0.0.1:8080", with: "127.0.0.1:0")
            .replacing("listen: 127.0.0.1:8081", with: "listen: 127.0.0.1:0\n  socket: \(directory.path)/p")
        try directory.write(playground + "\nlog: {format: json}\n", to: "playground.yaml")
        for (file, ending) in [("warned", 0), ("playground", 0), ("short", 78), ("stops", 1)] as [(String, Int32)] {
            let proxy = try ChildProcess([
                try Repository.executable(), "serve", "--config", directory.path(of: "\(file).yaml"),
            ])
            if ending == 0 {
                try await eventually("it listens") { proxy.errors.contains("\"listening\"") }
                proxy.signal(SIGHUP)
                try await eventually("it has read again") { proxy.errors.contains("was read again and is in use") }
                #expect(try await proxy.stop() == .exited(0))
            } else {
                #expect(try await proxy.ended() == .exited(ending), "\(file)")
            }
            #expect(proxy.output.isEmpty)
            let lines = proxy.errors.split(separator: "\n")
            #expect(!lines.isEmpty)
            for line in lines {
                let json = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                #expect(json?["level"] != nil && json?["message"] != nil, "\(file): \(line)")
            }
            if file == "warned" {
                let warning = try #require(lines.first { $0.contains("\"level\":\"warning\"") && $0.contains("scope") })
                let json = try JSONSerialization.jsonObject(with: Data(warning.utf8)) as? [String: Any]
                #expect(json?["line"] as? Int == 5)
                #expect(json?["column"] is Int)
                #expect((json?["file"] as? String)?.hasSuffix("warned.yaml") == true)
            }
        }
    }

    @Test func `the first run signs somebody in, without a server of anybody's`() async throws {
        var text = try String(contentsOfFile: Repository.root + "/config.yaml", encoding: .utf8)
        text.replace("127.0.0.1:8080", with: "127.0.0.1:0")
        text.replace("listen: 127.0.0.1:8081", with: "listen: 127.0.0.1:0\n  socket: FOLDER/admin.sock")
        let proxy = try await RunningProxy(text)
        let page = try await eventually("the page's address") {
            try? /The page, with sign-ins to try: (http:\/\/127\.0\.0\.1:\d+\/)/.firstMatch(in: proxy.process.output)?.1
        }
        #expect(try await ChildProcess.output(of: ["curl", "-sS", "--fail", String(page)]).contains("person"))
        let socket = proxy.directory.path(of: "admin.sock")
        let status = try await RunningProxy.run(["status", "--socket", socket])
        #expect(status.output.contains("playground") && status.output.contains("person"))
        let why = try await RunningProxy.run(["why", "--socket", socket, "GET", "http://person.playground.test/"])
        #expect(why.output.contains("person"), "\(why.transcript)")

        // The device: its code is on the terminal, and a person allows it on the playground's page.
        #expect(try await proxy.get("http://device.playground.test/x").status == 503)
        let login = try ChildProcess([try Repository.executable(), "login", "--socket", socket, "device"])
        let address = try await eventually("the code") {
            try? /(http:\/\/127\.0\.0\.1:\d+\/device)\s+([A-Z]{4}-[A-Z]{4})/.firstMatch(
                in: login.output + login.errors)
        }
        try await ChildProcess.output(
            of: ["curl", "-sS", "--fail", "-d", "user_code=\(address.2)&decision=allow", String(address.1)])
        #expect(try await login.ended() == .exited(0), "\(login.transcript)")
        let answer = try await proxy.get("http://device.playground.test/x")
        #expect(answer.status == 200)
        #expect(try await proxy.terminate() == .exited(0))
    }
}
