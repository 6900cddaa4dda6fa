import Foundation
import Synchronization
import TestSupport
import Testing

/// Uses each kind of credential at `debug`, with and without failures. Then all output is searched for secrets.
@Suite("nothing that is written shows a secret", .timeLimit(.minutes(3)))
struct SecretsShownTests {
    /// Stands in each secret of this test, and in nothing else.
    private static let mark = "xQz7Kv93"

    /// Output of each program, by its name.
    private final class Written: Sendable {
        private let texts = Mutex<[(name: String, text: String)]>([])

        func add(_ name: String, _ text: String) { texts.withLock { $0.append((name, text)) } }
        func add(_ name: String, _ response: RawResponse) {
            let fields = response.fields.map(\.description).joined(separator: "\n")
            add(name, "\(fields)\n\n\(response.text)")
        }
        func add(_ run: ChildProcess) { add(run.arguments.joined(separator: " "), run.transcript) }

        var all: [(name: String, text: String)] { texts.withLock { $0 } }
        func named(_ name: String) -> String { all.filter { $0.name == name }.map(\.text).joined() }
    }

    private static func secret(_ name: String) -> String { "\(name)-\(mark)-0123456789" }

    private static let names = [
        "plain", "form", "signed", "password", "refresh", "device", "person", "caller", "bound", "echo", "key", "basic",
        "aws", "session", "user", "admin",
    ]

    private static func clients(_ server: String) -> String {
        func client(_ name: String, _ lines: String, path: String = "token") -> String {
            """
              \(name):
                token_endpoint: \(server)/\(path)
                client_id: \(name)-client
                allow_plaintext: true
            \(lines.indented(4))

            """
        }
        func secret(_ name: String) -> String { "client_secret: {file: FOLDER/\(name)}" }
        return client("plain", secret("plain") + "\nexportable: true")
            + client("form", secret("form") + "\ntoken_endpoint_auth_method: client_secret_post")
            + client("signed", secret("signed") + "\ntoken_endpoint_auth_method: client_secret_jwt")
            + client(
                "password",
                "grant_type: password\nusername: alice\npassword: {file: FOLDER/password}\nallow_deprecated: true")
            + client("refresh", "grant_type: refresh_token\nrefresh_token: {file: FOLDER/refresh}")
            + client(
                "device",
                "grant_type: device_code\ndevice_authorization_endpoint: \(server)/device\n" + secret("device"))
            + client(
                "person",
                "grant_type: authorization_code\nauthorization_endpoint: \(server)/authorize\n"
                    + "revocation_endpoint: \(server)/revoke\n" + secret("person"))
            + client("caller", "grant_type: token-exchange\nsubject_token: caller\n" + secret("caller"))
            + client("bound", "dpop: true\n" + secret("bound"))
            + client("echo", secret("echo"), path: "echo") + client("html", secret("echo"), path: "html")
            + client("half", secret("echo"), path: "half")
    }

    private static func configuration(_ server: String, _ origin: String) -> String {
        let signed = [
            "plain", "form", "signed", "password", "refresh", "device", "person", "caller", "bound", "echo", "html",
            "half",
        ].map { "  - {host: \($0).test, url: \(origin), client: \($0), allow_plaintext: true, token_wait: 2s}" }
        return """
            proxy:
              listen: [127.0.0.1:0, {unix: FOLDER/h.sock}]
              users: {alice: {file: FOLDER/user}}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock, token: {file: FOLDER/admin}}
            log: {level: trace}
            audit: {file: FOLDER/audit.jsonl}
            clients:
            \(clients(server))
            upstreams:
            \(signed.joined(separator: "\n"))
              - {host: key.test, url: \(origin), allow_plaintext: true, inject: [{header: X-Api-Key, value: {file: FOLDER/key}}, {query: k, value: {file: FOLDER/key}}]}
              - {host: basic.test, url: \(origin), allow_plaintext: true, inject: {basic: {username: bob, password: {file: FOLDER/basic}}}}
              - {host: aws.test, url: \(origin), allow_plaintext: true, inject: {sigv4: {region: r, service: execute-api, access_key_id: AKIDEXAMPLE, secret_access_key: {file: FOLDER/aws}, session_token: {file: FOLDER/session}}}}
              - {host: lost.test, url: "http://127.0.0.1:1", client: plain, allow_plaintext: true}
              - {host: strict.test, url: \(origin), client: plain, allow_plaintext: true, on_existing: reject}
            """
    }

    /// Gives marked tokens, and says in its errors all that it was sent.
    private static func server() throws -> TokenEndpoint {
        try TokenEndpoint { request, number in
            let heard = (request.field("Authorization") ?? "") + " " + request.body
            let said = heard.replacing("\"", with: "'").replacing("\\", with: "/")
            switch request.target {
            case "/device":
                return .json(
                    #"{"device_code":"\#(secret("device-code"))","user_code":"USER-CODE","#
                        + #""verification_uri":"http://127.0.0.1/go","expires_in":60,"interval":1}"#)
            case "/revoke": return .json(#"{"error":"server_error","error_description":"\#(said)"}"#, status: 500)
            case "/echo":
                return .error("invalid_client", status: 401, description: "wrong: \(said)")
            case "/html": return .status(500, fields: [("X-Said", mark)])
            case "/half":
                return .json(#"{"access_token":"\#(secret("access"))","token_type":"mac","expires_in":60}"#)
            default: break
            }
            let refresh = secret("rotated-\(number)")
            let type = request.field("DPoP") == nil ? "Bearer" : "DPoP"
            return .token(secret("access-\(number)"), type: type, expiresIn: "60", refreshToken: refresh)
        }
    }

    /// The text of a Basic credential.
    private static func basic(_ value: String?) -> String {
        guard let value, value.hasPrefix("Basic "), let bytes = Data(base64Encoded: String(value.dropFirst(6))) else {
            return ""
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `no output shows a secret of any way to a credential, at the most talkative level`() async throws {
        let written = Written()
        let refusals = Mutex(0)
        let origin = try RecordingOrigin { exchange in
            // Says of a token, once, that it is wrong.
            let refuses =
                exchange.head.target == "/old"
                && refusals.withLock { count in
                    count += 1
                    return count == 1
                }
            try exchange.respond(refuses ? 401 : 200)
        }
        let server = try Self.server()
        let url = "http://127.0.0.1:\(server.port)"
        let files = Dictionary(
            uniqueKeysWithValues: Self.names.map { ($0, Self.secret($0) + "-and-so-that-it-is-long-enough") })
        let proxy = try await RunningProxy(
            Self.configuration(url, origin.url), files: files, environment: ["HEIMDALLR_TEST": Self.mark], listeners: 2)
        let (_, port, socket) = try await proxy.administration()
        let me = ("Proxy-Authorization", "Basic " + Data("alice:\(files["user"] ?? "")".utf8).base64EncodedString())

        func command(_ words: String...) async throws {
            written.add(try await RunningProxy.run([words[0], "--socket", socket] + words.dropFirst()))
        }
        func get(
            _ url: String, _ fields: [(String, String)] = [], method: String = "GET", as user: (String, String)? = nil
        ) async throws -> RawResponse {
            let response = try await proxy.send(method, url, fields: [user ?? me] + fields)
            written.add("an answer for \(url.prefix { $0 != "?" })", response)
            return response
        }
        func admin(_ target: String, token: String? = nil, method: String = "GET", more: String = "") async throws
            -> RawResponse
        {
            let own = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
            let response = try await RawClient.exchange(
                port: port,
                "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(own)\(more)Connection: close\r\n\r\n")
            written.add("the admin port: \(target.prefix { $0 != "?" })", response)
            return response
        }
        let adminToken = files["admin"] ?? ""

        // Those who sign in.
        let page = try ChildProcess([try Repository.executable(), "login", "--socket", socket, "person"])
        let out = try await admin(
            String(try await address(in: page).drop(while: { $0 != ":" }).dropFirst(3).drop(while: { $0 != "/" })),
            token: adminToken)
        #expect(out.status == 303, "\(out.text)")
        let location = try #require(out.field("Location").flatMap { URLComponents(string: $0) })
        let state = try #require(location.queryItems?.first { $0.name == "state" }?.value)
        let cookie = try #require(out.field("Set-Cookie")?.split(separator: ";").first)
        let wrong = try await admin(
            "/callback?code=\(Self.mark)&state=\(Self.mark)", more: "Cookie: \(cookie)\r\n")
        #expect(wrong.status >= 400)
        #expect(
            try await admin("/callback?code=\(Self.secret("code"))&state=\(state)", more: "Cookie: \(cookie)\r\n")
                .status
                == 200)
        #expect(try await page.ended() == .exited(0), "\(page.transcript)")
        // The address that it prints holds what makes the attempt its own, and is meant to.
        try await command("login", "device")

        // Requests of programs.
        for host in [
            "plain", "form", "signed", "password", "refresh", "device", "person", "bound", "key", "basic", "aws",
        ] {
            let response = try await get(
                "http://\(host).test/path?q=\(Self.mark)",
                // The program's name alone is shown: on the page and in `requests`.
                [("Cookie", Self.mark), ("X-Token", Self.mark), ("User-Agent", "legacy/1")])
            #expect(response.status == 200, "\(host): \(response.text)\n\(proxy.log)")
        }
        #expect(try await get("http://plain.test/old").status == 200)
        let callers = ("Authorization", "Bearer \(Self.secret("callers-own"))")
        #expect(try await get("http://caller.test/", [callers]).status == 200)
        let own = ("Authorization", "Bearer \(Self.secret("programs-own"))")
        #expect(try await get("http://strict.test/", [own]).status == 403)
        #expect(try await get("http://lost.test/?\(Self.mark)").status == 502)
        #expect(try await get("http://nobody.test/?\(Self.mark)", [own]).status == 403)
        for host in ["echo", "html", "half"] {
            #expect(try await get("http://\(host).test/").status >= 500)
        }
        let stranger = ("Proxy-Authorization", "Basic " + Data("alice:\(Self.mark)".utf8).base64EncodedString())
        #expect(try await get("http://plain.test/", as: stranger).status == 407)
        written.add(
            "an answer to nonsense",
            try await RawClient.exchange(
                port: proxy.port, "GET http://u:\(Self.mark)@plain.test/?\(Self.mark) HTTP/1.1\r\nHost: x\r\n\r\n"))

        // Requests of people.
        for target in ["/metrics", "/readyz?strict", "/livez"] { _ = try await admin(target) }
        for target in ["/status", "/status?format=text", "/", "/status?\(Self.mark)"] {
            _ = try await admin(target, token: adminToken)
        }
        _ = try await admin("/status", token: Self.secret("wrong-guess-at-the-token"))
        let events = try await RawClient.connect(port: port)
        try await events.send(
            "GET /events HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nAuthorization: Bearer \(adminToken)\r\n\r\n")
        for words in [
            ["status"], ["status", "--json"], ["why", "GET", "http://plain.test/?x"], ["log-level", "debug"],
        ] {
            written.add(try await RunningProxy.run([words[0], "--socket", socket] + words.dropFirst()))
        }
        let file = proxy.directory.path + "/config.yaml"
        written.add(try await RunningProxy.run(["check", "--config", file]))
        written.add(try await RunningProxy.run(["doctor", "--config", file]))
        let shown = try await RunningProxy.run(["token", "--socket", socket, "plain"])
        #expect(shown.output.contains(Self.mark), "what is asked for is given: \(shown.transcript)")
        try await command("logout", "person")
        try await command("logout", "--local", "device")

        // A configuration that is read again, good and bad.
        let good = try String(contentsOfFile: file, encoding: .utf8)
        let literal = good.replacing("{file: \(proxy.directory.path)/plain}", with: "\"\(files["plain"] ?? "")\"")
        let broken = [
            literal + "\nproxy: {lissten: 1}", literal.replacing("client_secret", with: "clinet_secret"),
            literal.replacing("client_secret: \"", with: "client_secret: [\""), literal,
        ]
        for text in broken {
            try proxy.directory.write(text, to: "config.yaml")
            written.add(try await RunningProxy.run(["reload", "--config", file]))
            written.add(try await RunningProxy.run(["check", "--config", file]))
        }
        try proxy.directory.write(Self.secret("changed"), to: "form")
        try proxy.directory.write(good, to: "config.yaml")
        proxy.process.signal(SIGHUP)
        try await eventually("it was read") {
            proxy.log.contains("the configuration was read again and is in use")
        }
        #expect(try await get("http://plain.test/").status == 200)
        written.add("the stream of events", try await events.read(until: "event:"))
        events.close()
        #expect(try await proxy.terminate() == .exited(0))
        written.add("the log", proxy.log)
        written.add("standard output", proxy.process.output)
        written.add("the audit stream", try proxy.directory.read("audit.jsonl"))

        // Nothing of this was for show.
        #expect(written.named("the log").contains(" debug a token was requested "))
        #expect(written.named("the log").contains(" debug admin request "))
        for result in ["success", "refused", "http_error", "bad_answer"] {
            #expect(written.named("the log").contains("result=\(result)"), "\(result)")
        }
        #expect(written.named("the audit stream").contains("\"audit\":\"given\""))
        for name in ["plain", "echo", "password", "refresh"] {
            #expect(server.requests.contains { ($0.body + Self.basic($0.field("Authorization"))).contains(name) })
        }

        // All that was secret, as it was and as it went over the wire.
        var secrets = Set([Self.mark, Data(Self.mark.utf8).base64EncodedString()])
        for request in origin.requests {
            for name in ["Authorization", "DPoP", "X-Api-Key", "X-Amz-Security-Token"] {
                for value in request.values(name) {
                    secrets.insert(value.split(separator: " ", maxSplits: 1).last.map(String.init) ?? value)
                }
            }
        }
        for request in server.requests {
            for value in [
                request.field("Authorization"), request.field("DPoP"), request["client_assertion"],
                request["code_verifier"],
            ] {
                if let value {
                    secrets.insert(value.split(separator: " ", maxSplits: 1).last.map(String.init) ?? value)
                }
            }
        }
        #expect(secrets.count > 15)
        for (name, text) in written.all {
            for secret in secrets where text.contains(secret) {
                Issue.record("\(name) shows \(secret): \(text.split(separator: "\n").filter { $0.contains(secret) })")
            }
        }
    }
}
