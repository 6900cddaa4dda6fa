import Foundation
import TestSupport
import Testing

@Suite("a person signs in", .timeLimit(.minutes(5)), .serialized)
struct LoginTests {
    private static let user = [DjangoOAuthToolkit.user.name, DjangoOAuthToolkit.user.password]

    @Test func `one sign-in at the page keeps the token fresh, across a restart, until the person signs out`()
        async throws
    {
        let server = try await DjangoOAuthToolkit(accessTokenSeconds: 8)
        let store = try TemporaryDirectory()
        let person = Person()
        // The same port after the restart, for the redirect URI is made of it.
        let port = try freePort()
        var running = try await LoginProxy(
            server, client: LoginProxy.browser, adminPort: port, store: "\(store.path)/tokens")

        // No person is signed in. The answer and the log name the page of the login.
        let refused = try await running.proxy.get("http://api.test/api/mine")
        #expect(refused.status == 503)
        #expect(refused.text.contains("\"login_url\":\"\(running.admin)/login/api\""))
        let (proxy, line) = (running.proxy, "login_url=\(running.admin)/login/api")
        _ = try await eventually("the log says where to sign in") { proxy.log.contains(line) ? true : nil }
        #expect(try await running.get("/readyz").status == 200)
        #expect(try await running.get("/readyz?strict").status == 503)

        let seen = try await person.done(["sign-in", running.admin, "api"] + Self.user, with: running)
        #expect(seen.contains("state Ready"))
        #expect(seen.contains("who \(DjangoOAuthToolkit.user.email)"))
        #expect(try OAuthServerTests.Report(await running.proxy.get("http://api.test/api/mine")).user == "ada")

        // The token expires while it is in use. The page shows the new one.
        let watching = try person.does(["refreshed", running.admin, "api"])
        let asked = server.tokenRequests
        while watching.ending == nil {
            #expect(try await running.proxy.get("http://api.test/api/mine").status == 200)
            // Time itself: a token in use, and a page that has time to draw it.
            try await Task.sleep(for: .milliseconds(200))
        }
        #expect(try await Person.judged(watching, running).contains("refreshed"))
        #expect(server.tokenRequests > asked)

        #expect(try await running.proxy.terminate() == .exited(0))
        running = try await LoginProxy(
            server, client: LoginProxy.browser + "\nexportable: true", adminPort: port, store: "\(store.path)/tokens")
        let still = try OAuthServerTests.Report(await running.proxy.get("http://api.test/api/mine"))
        #expect(still.user == "ada")

        let token = try await RunningProxy.run(["token", "api", "--socket", running.socket]).output
            .trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(try await Self.answer(of: server, to: token) == 200)
        let out = try await person.done(["sign-out", running.admin, "api"], with: running)
        #expect(out.contains("state Ready") && out.contains("who \(DjangoOAuthToolkit.user.email)"))
        #expect(out.contains("state Sign-in needed"))
        #expect(try await Self.answer(of: server, to: token) == 401)
        #expect(try await server.tokens().refresh == server.tokens().refreshRevoked)
        #expect(try await running.proxy.get("http://api.test/api/mine").status == 503)
        for secret in [token, DjangoOAuthToolkit.browser.secret] { #expect(!running.proxy.log.contains(secret)) }
    }

    private static func answer(of server: DjangoOAuthToolkit, to token: String) async throws -> Int {
        try await RawClient.exchange(
            port: server.port,
            "GET /api/mine HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nAuthorization: Bearer \(token)\r\n\r\n"
        ).status
    }

    @Test func `a person signs in on another device, by the code that the page shows`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.television(server))
        let seen = try await Person().done(["device", running.admin, "api"] + Self.user, with: running)
        #expect(seen.contains("state Ready"))
        #expect(try OAuthServerTests.Report(await running.proxy.get("http://api.test/api/mine")).user == "ada")
    }

    @Test func `a person without JavaScript signs in, and signs out again`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.browser)
        let seen = try await Person().done(["without-script", running.admin, "api"] + Self.user, with: running)
        #expect(
            seen.filter { $0.hasPrefix("state ") } == ["state Sign-in needed", "state Ready", "state Sign-in needed"])
        #expect(try await server.tokens().refresh == server.tokens().refreshRevoked)
    }

    @Test func `a person signs in at a server with the implicit grant only, whose answer stands behind #`() async throws
    {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(
            server,
            client: """
                grant_type: implicit
                allow_deprecated: true
                client_id: \(DjangoOAuthToolkit.old)
                scope: [read]
                """)
        let seen = try await Person().done(["sign-in", running.admin, "api"] + Self.user, with: running)
        #expect(seen.contains("state Ready"))
        #expect(try OAuthServerTests.Report(await running.proxy.get("http://api.test/api/mine")).user == "ada")
    }

    @Test func `a person signs in at a page of any width, light and dark`() async throws {
        let server = try await DjangoOAuthToolkit()
        let running = try await LoginProxy(server, client: LoginProxy.browser)
        let seen = try await Person().done(["pictures", running.admin, "page"], with: running)
        #expect(seen.filter { $0.hasPrefix("picture ") }.count == 4)
    }
}
