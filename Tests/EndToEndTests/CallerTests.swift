import Foundation
import TestSupport
import Testing

@Suite("who calls decides which token goes on, by real programs", .timeLimit(.minutes(3)))
struct CallerTests {
    private let origin: RecordingOrigin
    /// One for each client: its token has the client's name.
    private let endpoint: RecordingOrigin

    init() throws {
        origin = try RecordingOrigin { try $0.respond(body: "answer") }
        endpoint = try RecordingOrigin { exchange in
            let client = exchange.head.target.split(separator: "/").last ?? "?"
            try exchange.respond(
                fields: [("Content-Type", "application/json")],
                body: #"{"access_token":"token-of-\#(client)","token_type":"Bearer","expires_in":3600}"#)
        }
    }

    static let isRoot = getuid() == 0
    /// Of programs that are not the proxy's user.
    static let (reports, imports, nobody): (UInt32, UInt32, UInt32) = (54_321, 54_322, 54_323)

    private func configuration(_ proxy: String, upstreams: String...) -> ProxyConfiguration {
        let clients = ["reports", "imports"].map {
            "  \($0): {token_endpoint: \(endpoint.url)/\($0), client_id: \($0), allow_plaintext: true}"
        }
        return ProxyConfiguration(
            proxy: proxy, admin: "", clients: clients,
            upstreams: upstreams.map {
                "  - {host: shared.test, url: \"\(origin.url)\", allow_plaintext: true, \($0)}"
            }, files: ["alice": "a-password", "bob": "b-password"])
    }

    private func proxy(_ configuration: ProxyConfiguration, listeners: Int = 1) async throws -> RunningProxy {
        let proxy = try await RunningProxy(configuration, listeners: listeners)
        // Other users can reach the socket's folder. The socket's mode decides their access.
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: proxy.directory.path)
        return proxy
    }

    /// A GET of `http://shared.test/` by curl: status and body.
    private func curl(_ arguments: [String], as user: UInt32? = nil) async throws -> (child: ChildProcess, text: String)
    {
        let wrapper = user.map { ["setpriv", "--reuid", "\($0)", "--regid", "\($0 + 1000)", "--clear-groups", "--"] }
        let child = try await ChildProcess.run(
            (wrapper ?? []) + ["curl", "-sS", "-w", " %{http_code}"] + arguments + ["http://shared.test/x"],
            environment: ["http_proxy": nil, "no_proxy": nil, "HOME": "/"])
        return (child, child.output)
    }

    private static let users =
        "users: {alice: {file: FOLDER/alice}, bob: {file: FOLDER/bob}, carol: {file: FOLDER/bob}}"

    @Test func `two programs get two clients' tokens for one host, and a third one none`() async throws {
        let proxy = try await proxy(
            configuration(
                Self.users, upstreams: "client: reports, callers: {users: [alice]}",
                "client: imports, callers: {users: bob}"))
        for (user, client) in [("alice:a-password", "reports"), ("bob:b-password", "imports")] {
            #expect(try await curl(["-x", proxy.url, "--proxy-user", user]).text == "answer 200")
            #expect(origin.requests.last?.values("Authorization") == ["Bearer token-of-\(client)"])
        }
        let other = try await curl(["-x", proxy.url, "--proxy-user", "carol:b-password"]).text
        #expect(other.hasSuffix(" 403") && other.contains("not-for-caller"), "\(other)")
        #expect(other.contains("Add the user, the uid or the listener to the upstream's `callers`"))
        #expect(!other.contains("reports") && !other.contains("imports") && !other.contains("token-of"))
        #expect(try await curl(["-x", proxy.url]).text.hasSuffix(" 407"))
        #expect(origin.requests.count == 2)
        try await eventually("the log has them") {
            proxy.log.contains("client=reports user=alice") && proxy.log.contains("client=imports user=bob")
                && proxy.log.contains("user=carol")
        }
    }

    @Test func `check and why show the callers`() async throws {
        let proxy = try await proxy(
            configuration(
                Self.users, upstreams: "client: reports, callers: {users: [alice]}",
                "client: imports, callers: {users: [bob, carol]}", "methods: [GET], paths: [/open]"))
        let check = try await RunningProxy.run(["check", "--config", proxy.directory.path(of: "config.yaml")])
        #expect(check.ending == .exited(0), "\(check.transcript)")
        let cells = check.output.split(separator: " ").joined(separator: " ")
        for words in [
            "127.0.0.1:0\n for users only: alice, bob, carol", "* users alice -> http://",
            "* users bob, carol -> http://",
        ] { #expect(cells.contains(words), "\(check.output)") }
        func why(_ url: String) async throws -> String {
            try await RunningProxy.run(["why", "GET", url, "--socket", proxy.directory.path(of: "admin.sock")]).output
        }
        let shared = try await why("http://shared.test/x")
        #expect(
            shared.hasPrefix("It depends on the caller.\n\nrule         upstreams[0] shared.test callers users alice\n")
        )
        for words in [
            "client       reports (client_credentials)",
            "\n\nrule         upstreams[1] shared.test callers users bob, carol\n",
            "client       imports (client_credentials)",
            "\n\nAll others:\n\nThe proxy itself would answer 403: The configuration names this host, but no rule for it allows this caller",
        ] { #expect(shared.contains(words), "\(shared)") }
        let open = try await why("http://shared.test/open")
        #expect(open.hasPrefix("rule         upstreams[2] shared.test paths /open methods GET\n"), "\(open)")
    }

    @Test(arguments: [
        (["callers: {users: [alice]}", "callers: {users: [alice, bob]}"], false),
        (["callers: {users: [alice]}", "callers: {listeners: [127.0.0.1:18080]}"], false),
        (["callers: {users: [alice]}", "callers: {users: [bob]}", "methods: [GET]", "paths: [/x]", ""], true),
        (["", ""], false),
    ])
    func `rules that some caller fits equally well are an error, others are not`(callers: [String], isGood: Bool)
        async throws
    {
        let folder = try TemporaryDirectory()
        try folder.write("x", to: "secret")
        let entries = callers.map { "  - {host: shared.test\($0.isEmpty ? "" : ", " + $0)}" }
        let file = try folder.write(
            """
            proxy: {listen: "127.0.0.1:18080", users: {alice: {file: secret}, bob: {file: secret}}}
            upstreams:
            \(entries.joined(separator: "\n"))
            """, to: "config.yaml")
        let check = try await RunningProxy.run(["check", "--config", file])
        #expect(check.ending == .exited(isGood ? 0 : 78), "\(check.transcript)")
        if !isGood {
            #expect(
                check.errors.contains(
                    "4:12: upstreams[1]: shared.test matches the same requests as the upstream in line 3"))
        }
    }

    @Test(.enabled(if: isRoot, "only root can be another user"))
    func `programs of two users get two clients' tokens for one host through one socket`() async throws {
        let proxy = try await proxy(
            configuration(
                "listen: [127.0.0.1:0, {unix: FOLDER/h.sock, mode: \"0666\"}]",
                upstreams: "client: reports, callers: {uids: [\(Self.reports)]}",
                "client: imports, callers: {uids: [\(Self.imports)]}"), listeners: 2)
        let path = proxy.directory.path(of: "h.sock")
        for (user, client) in [(Self.reports, "reports"), (Self.imports, "imports")] {
            let run = try await curl(["--unix-socket", path], as: user)
            #expect(run.text == "answer 200", "\(run.child.transcript)")
            #expect(origin.requests.last?.values("Authorization") == ["Bearer token-of-\(client)"])
            let peer = "client=\(client) uid=\(user) gid=\(user + 1000) pid=\(run.child.pid)"
            try await eventually("the log has \(peer)") { proxy.log.contains(peer) }
        }
        for user in [Self.nobody, 0] {
            let refused = try await curl(["--unix-socket", path], as: user)
            #expect(refused.text.hasSuffix(" 403") && refused.text.contains("not-for-caller"), "\(refused.text)")
        }
        // Over TCP the user is unknown.
        #expect(try await curl(["-x", proxy.url], as: Self.reports).text.hasSuffix(" 403"))
        #expect(origin.requests.count == 2)
    }

    @Test(.enabled(if: isRoot, "only root can be another user"), arguments: [("", false), (", mode: \"0606\"", true)])
    func `the socket's mode says who gets as far as that`(mode: String, isOpen: Bool) async throws {
        let proxy = try await proxy(
            configuration("listen: {unix: FOLDER/h.sock\(mode)}", upstreams: "client: reports"))
        let path = proxy.directory.path(of: "h.sock")
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == (isOpen ? 0o606 : 0o600))
        let other = try await curl(["--unix-socket", path], as: Self.nobody)
        #expect(other.text == (isOpen ? "answer 200" : " 000"), "\(other.child.transcript)")
        #expect(try await curl(["--unix-socket", path]).text == "answer 200")
    }

    @Test(.enabled(if: isRoot, "only root can be another user"))
    func `a user with a password, on a socket, of a uid: all of them have to fit`() async throws {
        let proxy = try await proxy(
            configuration(
                "listen: [127.0.0.1:0, {unix: FOLDER/h.sock, mode: \"0666\"}]\n\(Self.users)",
                upstreams:
                    "client: reports, callers: {users: [alice], uids: [\(Self.reports)], listeners: [\"unix:FOLDER/h.sock\"]}"
            ), listeners: 2)
        let socket = ["--unix-socket", proxy.directory.path(of: "h.sock")]
        func field(_ credentials: String) -> [String] { ["-H", "Proxy-Authorization: Basic \(credentials.base64)"] }
        #expect(try await curl(socket + field("alice:a-password"), as: Self.reports).text == "answer 200")
        for (arguments, user, status) in [
            (socket + field("bob:b-password"), Self.reports, "403"),
            (socket + field("alice:a-password"), Self.imports, "403"),
            (socket + field("alice:b-password"), Self.reports, "407"), (socket, Self.reports, "407"),
            (["-x", proxy.url] + field("alice:a-password"), Self.reports, "403"),
        ] {
            #expect(try await curl(arguments, as: user).text.hasSuffix(" " + status), "\(arguments) \(user)")
        }
        #expect(origin.requests.count == 1)
    }

    @Test func `each listener can lead to a client of its own`() async throws {
        let proxy = try await proxy(
            configuration(
                "listen: [\"unix:FOLDER/r.sock\", \"unix:FOLDER/i.sock\", \"unix:FOLDER/n.sock\"]",
                upstreams: "client: reports, callers: {listeners: [\"unix:FOLDER/r.sock\"]}",
                "client: imports, callers: {listeners: \"unix:FOLDER/i.sock\"}, listen: \"unix:FOLDER/own.sock\""),
            listeners: 4)
        for (socket, client) in [("r.sock", "reports"), ("i.sock", "imports")] {
            let run = try await curl(["--unix-socket", proxy.directory.path(of: socket)])
            #expect(run.text == "answer 200", "\(run.child.transcript)")
            #expect(origin.requests.last?.values("Authorization") == ["Bearer token-of-\(client)"])
        }
        let other = try await curl(["--unix-socket", proxy.directory.path(of: "n.sock")])
        #expect(other.text.hasSuffix(" 403") && other.text.contains("not-for-caller"))
        // A base URL on a socket.
        let own = try await ChildProcess.run(
            ["curl", "-sS", "--unix-socket", proxy.directory.path(of: "own.sock"), "http://localhost/x"])
        #expect(own.output == "answer")
        #expect(origin.requests.last?.values("Authorization") == ["Bearer token-of-imports"])
    }
}
