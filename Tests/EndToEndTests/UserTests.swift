import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("proxy.users, by real programs", .timeLimit(.minutes(3)))
struct UserTests {
    private let origin: RecordingOrigin

    init() throws {
        origin = try RecordingOrigin { try $0.respond(body: "answer") }
    }

    /// A password that may appear only in its request.
    private static let password = "pass:w%rd /@?ünd-SEKRET"

    private func proxy(
        users: String = "alice: {file: FOLDER/alice}", proxy: String = "", more: String = "", listeners: Int = 1
    ) async throws -> RunningProxy {
        try await RunningProxy(
            to: origin, proxy: "users:\n  \(users)\n\(proxy)", more: more, files: ["alice": Self.password + "\n"],
            listeners: listeners)
    }

    private static let quiet: [String: String?] = [
        "http_proxy": nil, "HTTP_PROXY": nil, "no_proxy": nil, "NO_PROXY": nil, "ALL_PROXY": nil, "all_proxy": nil,
    ]

    private func basic(_ credentials: String) -> (String, String) {
        ("Proxy-Authorization", "Basic \(credentials.base64)")
    }

    @Test(arguments: ProxyUserProgram.all)
    func `a program that says who it is comes in, with a wrong password it does not`(program: ProxyUserProgram)
        async throws
    {
        let proxy = try await proxy()
        let (arguments, environment) = try program.command(proxy.port, "alice", Self.password)
        let isGit = arguments[0] == "git"
        let good = try await ChildProcess.run(arguments, environment: Self.quiet.merging(environment) { $1 })
        if !isGit {
            #expect(good.ending == .exited(0), "\(good.transcript)")
            #expect(good.output.trimmingCharacters(in: .newlines) == "answer")
        }
        let count = origin.requests.count
        #expect(count >= 1, "\(good.transcript)")
        for request in origin.requests {
            #expect(request.values("Authorization") == ["Bearer \(token)"])
            #expect(request.values("Proxy-Authorization") == [])
        }
        let (wrong, wrongEnvironment) = try program.command(proxy.port, "alice", "a guess")
        let bad = try await ChildProcess.run(wrong, environment: Self.quiet.merging(wrongEnvironment) { $1 })
        #expect(bad.ending != .exited(0))
        #expect(bad.transcript.contains("407") || program.name == "wget", "\(bad.transcript)")
        #expect(origin.requests.count == count)
    }

    @Test func `no wrong credential gets in, and the log tells no secret`() async throws {
        let proxy = try await proxy()
        let good = "alice:\(Self.password)"
        let values: [[(String, String)]] = [
            [], [basic("alice:")], [basic("alice")], [basic(":")], [basic(":\(Self.password)")], [basic("")],
            [basic("ALICE:\(Self.password)")], [basic("alice:\(Self.password)x")],
            [basic("alice:" + String(Self.password.dropLast()))], [basic("\(good)\n")], [basic("\(good)\0")],
            [
                (
                    "Proxy-Authorization",
                    "Basic " + Data([0xFF, 0xFE, 0x3A] + Array(Self.password.utf8)).base64EncodedString()
                )
            ],
            [("Proxy-Authorization", "Basic " + Data(good.utf8 + [0xFF]).base64EncodedString())],
            [("Proxy-Authorization", "Basic \(good)")], [("Proxy-Authorization", good.base64)],
            [("Proxy-Authorization", "Bearer \(good.base64)")], [("Proxy-Authorization", "Basic \(good.base64)=")],
            [("Proxy-Authorization", "Basic \(good.base64), Basic \(good.base64)")],
            [basic(good), basic(good)], [("Authorization", "Basic \(good.base64)")],
            [basic("alice:" + String(repeating: "x", count: 40_000))],
            [basic(String(repeating: "a", count: 40_000) + ":")],
        ]
        for fields in values {
            let response = try await proxy.send("GET", "http://api.test/x", fields: fields)
            #expect(response.status == 407, "\(fields)")
            #expect(response.field("Proxy-Authenticate") == "Basic realm=\"heimdallr-proxy\", charset=\"UTF-8\"")
            #expect(proxyError(of: response) == "http_request_denied")
            #expect(!response.text.contains("SEKRET"))
        }
        // Too long for any head.
        let huge = try await proxy.send(
            "GET", "http://api.test/x", fields: [basic(String(repeating: "a", count: 80_000))])
        #expect(huge.status == 431)
        #expect(origin.connections.isEmpty)
        #expect(try await proxy.send("GET", "http://api.test/x", fields: [basic(good)]).status == 200)
        // The scheme's name is in any case, and more than one space may follow (RFC 9110, section 11.4).
        let spaced = [("proxy-authorization", "bASIC   \(good.base64)")]
        #expect(try await proxy.send("GET", "http://api.test/x", fields: spaced).status == 200)
        let lines = try await eventually("a line each") {
            let lines = proxy.log.split(separator: "\n").filter { $0.contains(" request ") }
            return lines.count >= values.count + 3 ? lines : nil
        }
        #expect(lines.filter { $0.contains("user=alice") && $0.contains("status=200") }.count == 2, "\(proxy.log)")
        #expect(lines.filter { $0.contains("user=") }.count == 2)
        #expect(lines.filter { $0.contains("path=/x ") }.count == values.count + 3)
        for secret in ["SEKRET", Self.password.base64, good.base64, "Proxy-Authorization"] {
            #expect(!proxy.log.contains(secret))
        }
    }

    @Test func `a request on a kept connection needs its own credential, and each gets its own user`() async throws {
        let proxy = try await proxy(users: "alice: a-password\n  bob: another")
        let client = try await RawClient.connect(port: proxy.port)
        for (credentials, status) in [
            ("alice:a-password", 200), (nil, 407), ("bob:another", 200), ("bob:a-password", 407),
            ("alice:a-password", 200),
        ] as [(String?, Int)] {
            let field = credentials.map { "Proxy-Authorization: Basic \($0.base64)\r\n" } ?? ""
            try await client.send("GET http://api.test/x HTTP/1.1\r\nHost: api.test\r\n\(field)\r\n")
            let response = try await client.response()
            #expect(response.status == status)
            #expect(response.field("Connection") == nil)
        }
        let users = try await eventually("five lines") {
            let lines = proxy.log.split(separator: "\n").filter { $0.contains(" request ") }
            return lines.count == 5
                ? lines.map { $0.split(separator: " ").first { $0.hasPrefix("user=") } ?? "" } : nil
        }
        #expect(users == ["user=alice", "", "user=bob", "", "user=alice"])
    }

    @Test func `a refused upload is answered, whatever its size, and the connection closed`() async throws {
        let proxy = try await proxy()
        let folder = try TemporaryDirectory()
        let file = try folder.write(String(repeating: "x", count: 3 << 20), to: "big")
        for more in [[], ["-H", "Expect:"]] {
            let curl = try await ChildProcess.run(
                [
                    "curl", "-sS", "-x", proxy.url, "-T", file, "-o", "/dev/null", "-w", "%{http_code}",
                    "http://api.test/x",
                ] + more, environment: Self.quiet)
            #expect(curl.output == "407", "\(curl.transcript)")
        }
        #expect(origin.connections.isEmpty)
    }

    @Test func `the secret of a user is that of its file, as it is now`() async throws {
        let proxy = try await proxy()
        @Sendable func status(_ password: String) async throws -> Int {
            try await proxy.send("GET", "http://api.test/x", fields: [basic("alice:\(password)")]).status
        }
        #expect(try await status(Self.password) == 200)
        try proxy.directory.write("new password\r\n", to: "alice")
        try await eventually("the file counts") { try await status("new password") == 200 }
        #expect(try await status(Self.password) == 407)
        // A missing, unreadable or empty file lets no user in, not even with an empty password.
        for change in ["rm alice", "mkdir alice", "rmdir alice; : > alice", "rm alice; mkfifo alice"] {
            try await ChildProcess.output(of: ["sh", "-c", change], directory: proxy.directory.path)
            try await eventually("the file counts") { try await status("new password") == 407 }
            #expect(try await status("") == 407)
            #expect(try await status(Self.password) == 407)
        }
        try await ChildProcess.output(of: ["rm", proxy.directory.path(of: "alice")])
        try proxy.directory.write("back", to: "alice")
        try await eventually("the file counts") { try await status("back") == 200 }
    }

    @Test func `a user whose secret is lost keeps nobody else out`() async throws {
        let proxy = try await proxy(users: "alice: {file: FOLDER/alice}\n  bob: another")
        try await ChildProcess.output(of: ["rm", proxy.directory.path(of: "alice")])
        @Sendable func status(_ credentials: String) async throws -> Int {
            try await proxy.send("GET", "http://api.test/x", fields: [basic(credentials)]).status
        }
        try await eventually("the file counts") { try await status("alice:\(Self.password)") == 407 }
        #expect(try await status("bob:another") == 200)
        let warning = "the secret can't be read"
        let reason = "alice: No such file or directory\" user=alice\n"
        try await eventually("a warning") { proxy.log.contains(warning) && proxy.log.contains(reason) }
        #expect(proxy.log.components(separatedBy: warning).count == 2, "said once")
    }

    @Test func `tunnels are for users only, too`() async throws {
        let proxy = try await proxy(proxy: "connect: tunnel\ntunnels: [\"\(origin.authority)\"]")
        func curl(_ arguments: String...) async throws -> ChildProcess {
            try await ChildProcess.run(
                ["curl", "-sS", "--fail", "-p", "-x", proxy.url] + arguments + [origin.url + "/through"],
                environment: Self.quiet)
        }
        for arguments in [[], ["--proxy-user", "alice:guess"]] {
            let run = try await ChildProcess.run(
                ["curl", "-sS", "-v", "-p", "-x", proxy.url] + arguments + [origin.url], environment: Self.quiet)
            #expect(run.ending != .exited(0))
            for words in ["HTTP/1.1 407", "Proxy-Authenticate: Basic realm=", "Connection: close"] {
                #expect(run.errors.contains(words), "\(run.transcript)")
            }
        }
        #expect(origin.connections.isEmpty)
        let good = try await curl("--proxy-user", "alice:\(Self.password)")
        #expect(good.output == "answer", "\(good.transcript)")
        let asked = try await curl("--proxy-anyauth", "--proxy-user", "alice:\(Self.password)")
        #expect(asked.output == "answer", "\(asked.transcript)")
        for request in origin.requests {
            #expect(request.line == "GET /through HTTP/1.1")
            #expect(request.values("Authorization") == [] && request.values("Proxy-Authorization") == [])
        }
        try await eventually("the log has it") {
            proxy.log.split(separator: "\n").contains { $0.contains("method=CONNECT") && $0.contains("user=alice") }
        }
        #expect(!proxy.log.contains("SEKRET"))
    }

    @Test func `guesses are slow, for requests and for tunnels, and users with the right password never wait`()
        async throws
    {
        let proxy = try await proxy(proxy: "connect: tunnel\ntunnels: [\"\(origin.authority)\"]")
        let port = proxy.port
        let answered = Recorder<Int>()
        let clock = ContinuousClock()
        let begin = clock.now
        let authority = origin.authority
        await withTaskGroup(of: Void.self) { group in
            for guesser in 0..<8 {
                group.addTask {
                    while begin.duration(to: clock.now) < .milliseconds(2500) {
                        let credentials = "alice:guess-\(Int.random(in: 0...999_999))".base64
                        let (line, method) =
                            guesser % 2 == 0
                            ? ("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)", "CONNECT")
                            : ("GET http://api.test/ HTTP/1.1\r\nHost: api.test", "GET")
                        let answer = try? await RawClient.exchange(
                            port: port, "\(line)\r\nProxy-Authorization: Basic \(credentials)\r\n\r\n", method: method)
                        if let answer { answered.append(answer.status) }
                    }
                }
            }
            var times: [Duration] = []
            for _ in 0..<15 {
                // Time itself: throughout the guesses.
                try? await Task.sleep(for: .milliseconds(150))
                let asked = clock.now
                let good = try? await proxy.send("GET", "http://api.test/x", fields: [basic("alice:\(Self.password)")])
                #expect(good?.status == 200)
                times.append(asked.duration(to: clock.now))
            }
            // A guess takes a second. A busy machine may be as slow once, not twice.
            #expect(times.sorted()[13] < .milliseconds(950), "\(times)")
        }
        let statuses = answered.all
        #expect(Set(statuses) == [407])
        // Ten are free, then each of the eight gets one answer a second.
        #expect(statuses.count >= 10 && statuses.count <= 10 + 8 * 5, "\(statuses.count)")
        let lines = proxy.log.split(separator: "\n").filter { $0.contains("wrong passwords of proxy.users") }
        #expect(lines.count >= 1 && lines.count <= 2, "\(lines)")
        #expect(lines.allSatisfy { $0.contains("peer=127.0.0.1") && $0.contains("user=alice") })
        #expect(!proxy.log.contains("guess-"))
    }

    @Test func `of many guesses at once only some wait; the others are cut off, and no place is lost`() async throws {
        let proxy = try await proxy()
        let credentials = "password-typed-as-name:x".base64
        let good = basic("alice:\(Self.password)")
        #expect(try await proxy.send("GET", "http://api.test/x", fields: [good]).status == 200)
        var clients: [RawClient] = []
        for _ in 0..<300 {
            let client = try await RawClient.connect(port: proxy.port)
            try? await client.send(
                "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nProxy-Authorization: Basic \(credentials)\r\n\r\n")
            clients.append(client)
        }
        // From where a password was right before, it still is.
        #expect(try await proxy.send("GET", "http://api.test/x", fields: [good]).status == 200)
        try await eventually("all of them are in the log") {
            proxy.log.split(separator: "\n").filter { $0.contains("status=407") }.count == 300
        }
        #expect(proxy.log.contains("user=(unknown)") || proxy.log.contains("user=\"(unknown)\""))
        #expect(!proxy.log.contains("password-typed"))
        withExtendedLifetime(clients) {}
    }

    @Test func `metrics and status know nothing of users`() async throws {
        let proxy = try await proxy(more: "admin: {listen: \"127.0.0.1:0\", socket: FOLDER/admin.sock}")
        let good = basic("alice:\(Self.password)")
        #expect(try await proxy.send("GET", "http://api.test/x", fields: [good]).status == 200)
        #expect(try await proxy.send("GET", "http://api.test/x", fields: [basic("mallory:x")]).status == 407)
        for path in ["metrics", "status", "events", "healthz"] {
            let answer = try await ChildProcess.run(
                [
                    "curl", "-sS", "--max-time", path == "events" ? "1" : "20", "--unix-socket",
                    proxy.directory.path(of: "admin.sock"), "http://localhost/\(path)",
                ])
            for words in ["SEKRET", Self.password.base64, String(good.1.dropFirst(6)), "mallory", "alice"] {
                #expect(!answer.output.contains(words), "\(path): \(answer.output)")
            }
            if path == "metrics" {
                #expect(answer.output.contains(#"requests_total{upstream="api.test",code="200"} 1"#))
            }
        }
    }

    @Test func `users are asked for on every listener, loopback and Unix socket alike`() async throws {
        let proxy = try await RunningProxy(
            to: origin,
            proxy: """
                listen: [127.0.0.1:0, "[::1]:0", unix:FOLDER/h.sock]
                users: {alice: {file: FOLDER/secret}}
                """, upstream: "listen: {unix: FOLDER/own.sock, mode: \"0600\"}", listeners: 4)
        let ways = [
            ["-x", proxy.url, "http://api.test/x"],
            ["-x", "http://\(proxy.listeners[1].address)", "http://api.test/x"],
            ["--unix-socket", proxy.directory.path(of: "h.sock"), "http://api.test/x"],
            ["--unix-socket", proxy.directory.path(of: "own.sock"), "http://localhost/x"],
        ]
        for way in ways {
            func status(_ fields: [String]) async throws -> String {
                try await ChildProcess.output(
                    of: ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}"] + fields + way, environment: Self.quiet
                )
            }
            #expect(try await status([]) == "407", "\(way)")
            #expect(try await status(["-H", "Proxy-Authorization: Basic \("alice:\(clientSecret)".base64)"]) == "200")
        }
        #expect(origin.requests.count == ways.count)
    }

    @Test func `exec says who a program is, and takes the secret's variable away`() async throws {
        let port = try freePort()
        let proxy = try await RunningProxy(
            to: origin,
            proxy: "listen: 127.0.0.1:\(port)\nusers: {al ice: {file: FOLDER/alice}, bob: {env: BOBS_SECRET}}",
            files: ["alice": Self.password], environment: ["BOBS_SECRET": "b+b"])
        let file = proxy.directory.path(of: "config.yaml")
        let environment = Self.quiet.merging(["BOBS_SECRET": "b+b"]) { $1 }
        func exec(_ arguments: String...) async throws -> ChildProcess {
            try await RunningProxy.run(["exec", "--config", file] + arguments, environment: environment)
        }
        for user in ["al ice", "bob"] {
            let run = try await exec("--user", user, "--", "curl", "-sS", "--fail", "http://api.test/x")
            #expect(run.output == "answer", "\(run.transcript)")
        }
        #expect(try await exec("--user", "bob", "--", "env").output.contains("BOBS_SECRET") == false)
        let none = try await exec("--", "true")
        #expect(none.ending == .exited(1) && none.errors.contains("add --user NAME, with one of al ice, bob"))
        let unknown = try await exec("--user", "carol", "--", "true")
        #expect(
            unknown.ending == .exited(1) && unknown.errors.contains("proxy.users has no such user; it has al ice, bob"))
    }
}
