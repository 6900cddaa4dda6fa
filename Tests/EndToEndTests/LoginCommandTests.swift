import Foundation
import TestSupport
import Testing

@Suite("heimdallr-proxy login", .timeLimit(.minutes(3)))
struct LoginCommandTests {
    @Test func `login waits until somebody has signed in at the address that it prints`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.browser)
        let command = try running.login()
        let out = try await running.get(try await address(in: command))
        #expect(out.status == 303)
        let cookie = try #require(out.field("Set-Cookie")?.split(separator: ";").first)
        let back = try await server.authorize(try #require(out.field("Location")))
        #expect(command.ending == nil)
        #expect(try await running.get(back, cookie: String(cookie)).status == 200)
        #expect(try await command.ended() == .exited(0))
        #expect(command.errors.contains("api is signed in."))
        #expect(command.errors.contains("The person is \(DjangoOAuthToolkit.user.email)."))
        #expect(running.proxy.log.contains("signed_in_as=\(DjangoOAuthToolkit.user.email)"))
        #expect(try await running.status().contains("signed in: \(DjangoOAuthToolkit.user.email)"))
        #expect(try OAuthServerTests.Report(await running.proxy.get("http://api.test/api/mine")).user == "ada")
    }

    @Test func `login is done too when somebody signs in at the page by themselves`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.browser)
        let command = try running.login()
        _ = try await address(in: command)
        let out = try await running.get("/login/api")
        let cookie = try #require(out.field("Set-Cookie")?.split(separator: ";").first)
        let back = try await server.authorize(try #require(out.field("Location")))
        #expect(try await running.get(back, cookie: String(cookie)).status == 200)
        #expect(try await command.ended() == .exited(0))
    }

    @Test func `login says that somebody has refused, and ends with 1`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.browser)
        let command = try running.login()
        let out = try await running.get(try await address(in: command))
        let cookie = try #require(out.field("Set-Cookie")?.split(separator: ";").first)
        let back = try await server.authorize(try #require(out.field("Location")), allowing: false)
        #expect(back.contains("error=access_denied"))
        #expect(try await running.get(back, cookie: String(cookie)).status == 400)
        #expect(try await command.ended() == .exited(1))
        #expect(command.errors.contains("The sign-in was refused"))
        #expect(try await running.proxy.get("http://api.test/api/mine").status == 503)
    }

    @Test func `login takes back the address that the browser was sent to, for this command alone`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.app)
        // A person pastes what belongs to another login.
        let first = try running.login(input: Array("com.example.app:/oauth?code=x&state=wrong\n".utf8))
        #expect(try await first.ended() == .exited(1))
        #expect(first.errors.contains("does not belong to this login"))
        // An end of input, or nothing, cancels.
        let second = try running.login(input: Array("\n".utf8))
        #expect(try await second.ended() == .exited(1))
        #expect(second.errors.contains("Cancelled"))
        #expect(try await running.proxy.get("http://api.test/api/mine").status == 503)
        // The address is known only when the command has begun, so it comes by a named pipe.
        let folder = try TemporaryDirectory()
        let pipe = "\(folder.path)/pipe"
        try await ChildProcess.output(of: ["mkfifo", pipe])
        let third = try ChildProcess(
            [
                "sh", "-c", "exec \"$@\" < \(pipe)", "sh", try Repository.executable(), "login", "--socket",
                running.socket,
                "api",
            ])
        let writer = try ChildProcess([
            "sh", "-c", "exec 3> \(pipe); while [ ! -e \(pipe).text ]; do sleep 0.1; done; cat \(pipe).text >&3",
        ])
        let back = try await server.authorize(try await address(in: third))
        #expect(back.hasPrefix("com.example.app:/oauth?"))
        try folder.write("  \(back)  \n", to: "pipe.text.part")
        try FileManager.default.moveItem(atPath: "\(pipe).text.part", toPath: "\(pipe).text")
        #expect(try await third.ended() == .exited(0))
        #expect(try await writer.ended() == .exited(0))
        #expect(try OAuthServerTests.Report(await running.proxy.get("http://api.test/api/mine")).user == "ada")
    }

    /// A terminal's line has 4,095 bytes at most.
    @Test func `login takes a paste of two lines and 9,000 bytes, in quotes, after one that is wrong`() async throws {
        let web = try PlayedWeb()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(web.url)/token", client: web.client + "\nredirect_uri: com.example.app:/oauth",
                admin: "",
                upstreams: ProxyConfiguration.upstream(url: web.url)))
        let half = String(repeating: "x", count: 4500)
        let dialogue = [
            ["paste it here:", "com.example.app:/oauth?code=C&state=another\n"],
            ["Paste the address again", "'com.example.app:/oauth?code=\(half)\n\(half)&state={state}'\n"],
        ]
        let json = String(decoding: try JSONEncoder().encode(dialogue), as: UTF8.self)
        let command = try await ChildProcess.run([
            try Repository.python(), "\(Repository.root)/Tests/EndToEndTests/Fixtures/terminal.py", json,
            try Repository.executable(), "login", "--socket", try await proxy.administration().socket, "api",
        ])
        #expect(command.ending == .exited(0), "\(command.transcript.suffix(2000))")
        #expect(command.output.contains("does not belong to this login"))
        #expect(command.output.contains("api is signed in."))
        let sent = try #require(web.origin.requests.last { $0.target == "/token" })
        #expect(sent.text.contains("code=\(half)\(half)&"))
    }

    @Test func `login shows a code for another device, and a QR code on a terminal`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.television(server))
        let command = try ChildProcess([
            try Repository.python(), "\(Repository.root)/Tests/EndToEndTests/Fixtures/terminal.py", "[]",
            try Repository.executable(), "login", "--socket", running.socket, "api",
        ])
        try await signIn(server) {
            if command.ending != nil { throw TestFailure(command.transcript) }
            // The dark and light modules of a QR code, with explicit colours, come last.
            return command.output.contains("left …") ? command.output : nil
        }
        #expect(try await command.ended() == .exited(0))
        #expect(command.output.contains("\u{1B}[30;107m"))
        #expect(command.output.contains("▀"))
        #expect(command.output.contains("api is signed in."))
        #expect(try OAuthServerTests.Report(await running.proxy.get("http://api.test/api/mine")).user == "ada")
        // Without a terminal there is neither drawing nor colour.
        let plain = try running.login()
        try await signIn(server) {
            if plain.ending != nil { throw TestFailure(plain.transcript) }
            return plain.errors.contains("/o/device/") ? plain.errors : nil
        }
        #expect(try await plain.ended() == .exited(0))
        #expect(!plain.errors.contains("\u{1B}["))
    }

    private static let narrow: [[String: String?]] = [
        ["LC_ALL": "C"], ["TERMINAL_COLUMNS": "28", "LC_ALL": "C.UTF-8"],
    ]

    @Test(arguments: narrow)
    func `login draws no QR code that the terminal can't show`(environment: [String: String?]) async throws {
        let device = try RecordingOrigin { exchange in
            let isBegun = try exchange.readBody().target == "/device"
            let begun = #"{"device_code":"D","user_code":"ABCD","verification_uri":"https://x.example","interval":1}"#
            try exchange.respond(
                isBegun ? 200 : 400, fields: [("Content-Type", "application/json")],
                body: isBegun ? begun : #"{"error":"access_denied"}"#)
        }
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(device.url)/token",
                client: "grant_type: device_code\ndevice_authorization_endpoint: \(device.url)/device", admin: "",
                upstreams: ProxyConfiguration.upstream(url: device.url)))
        let command = try await ChildProcess.run(
            [
                try Repository.python(), "\(Repository.root)/Tests/EndToEndTests/Fixtures/terminal.py", "[]",
                try Repository.executable(), "login", "--socket", try await proxy.administration().socket, "api",
            ], environment: environment)
        #expect(command.output.contains("ABCD"), "\(command.transcript)")
        #expect(!command.output.contains("\u{1B}[30;107m") && !command.output.contains("▀"))
    }

    @Test func `login opens the browser of BROWSER, also without a desktop`() async throws {
        let (web, folder) = (try PlayedWeb(), try TemporaryDirectory())
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(web.url)/token", client: web.client, admin: "",
                upstreams: ProxyConfiguration.upstream(url: web.url)))
        let script = try folder.write(
            "#!/bin/sh\nprintf '%s' \"$1\" > \(folder.path)/part\nmv \(folder.path)/part \(folder.path)/url\n",
            to: "browser")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script)
        let command = try ChildProcess(
            [
                try Repository.executable(), "login", "--socket", try await proxy.administration().socket, "api",
            ], environment: ["DISPLAY": nil, "WAYLAND_DISPLAY": nil, "BROWSER": "/nowhere/browser:\(script)"])
        let shown = try await address(in: command)
        let opened = try await eventually("the browser") { try? folder.read("url") }
        #expect(opened == shown)
        command.signal(SIGINT)
        #expect(try await command.ended() == .exited(1))
    }

    /// On another device, with what the command shows.
    private func signIn(_ server: DjangoOAuthToolkit, shown: @Sendable () throws -> String?) async throws {
        let text = try await eventually("a code", shown)
        let lines = text.replacing("\r\n", with: "\n")
        let match = try #require(lines.firstMatch(of: /\n {4}(http[^\s]+)\n {4}([A-Z0-9-]+)\n/))
        try await server.authorizeDevice(at: String(match.1), code: String(match.2))
    }

    @Test func `login asks for user name and password at a terminal, shows no password, and keeps neither`()
        async throws
    {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(
            server,
            client: """
                grant_type: password
                allow_deprecated: true
                client_id: \(DjangoOAuthToolkit.publicClient)
                scope: [read]
                """)
        func type(_ password: String) async throws -> ChildProcess {
            let dialogue = [
                ["User name for api: ", DjangoOAuthToolkit.user.name + "\n"],
                ["Password (not shown): ", password + "\n"],
            ]
            let json = String(decoding: try JSONEncoder().encode(dialogue), as: UTF8.self)
            return try await ChildProcess.run([
                try Repository.python(), "\(Repository.root)/Tests/EndToEndTests/Fixtures/terminal.py", json,
                try Repository.executable(), "login", "--socket", running.socket, "api",
            ])
        }
        let wrong = try await type("not her password")
        #expect(wrong.ending == .exited(1))
        #expect(!wrong.output.contains("not her password"))
        let right = try await type(DjangoOAuthToolkit.user.password)
        #expect(right.ending == .exited(0), "\(right.transcript)")
        #expect(!right.output.contains(DjangoOAuthToolkit.user.password))
        #expect(right.output.contains("api is signed in."))
        #expect(try OAuthServerTests.Report(await running.proxy.get("http://api.test/api/mine")).user == "ada")
        #expect(!running.proxy.log.contains(DjangoOAuthToolkit.user.password))
        let blind = try running.login()
        #expect(try await blind.ended() == .exited(1))
        #expect(blind.errors.contains("at a terminal"))
    }

    @Test func `Ctrl-C ends the sign-in's attempt, not only the waiting`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.browser)
        let command = try running.login()
        let out = try await running.get(try await address(in: command))
        let cookie = try #require(out.field("Set-Cookie")?.split(separator: ";").first)
        command.signal(SIGINT)
        #expect(try await command.ended() == .exited(1))
        #expect(command.errors.contains("Cancelled"))
        let back = try await server.authorize(try #require(out.field("Location")))
        #expect(try await running.get(back, cookie: String(cookie)).status == 400)
        #expect(try await running.proxy.get("http://api.test/api/mine").status == 503)
    }

    @Test func `login fails for a client that needs nobody, an unknown one, and without a proxy`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin, more: "admin: {listen: \"127.0.0.1:0\", socket: FOLDER/admin.sock}")
        let socket = "\(proxy.directory.path)/admin.sock"
        for (arguments, words) in [
            (["api"], "without a sign-in"), (["nobody"], "Its clients: api"), (["../x"], "no client of that name"),
        ] {
            let run = try await RunningProxy.run(["login", "--socket", socket] + arguments)
            #expect(run.ending == .exited(1))
            #expect(run.errors.contains(words), "\(run.errors)")
        }
        let nobody = try await RunningProxy.run(["login", "--socket", "\(socket)x", "api"])
        #expect(nobody.ending == .exited(1))
        #expect(nobody.errors.contains("no running proxy"))
    }
}
