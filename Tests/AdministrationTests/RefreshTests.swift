import TestSupport
import Testing

@Suite("a new token now: refresh, and its button", .timeLimit(.minutes(2)))
struct RefreshTests {
    @Test func `refresh waits for the new token and says what it is, never the token`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint { _, number in .token("\(accessToken)-\(number)") })
        try await admin.ready()
        let run = try await admin.run("refresh", "api")
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output.hasPrefix("Client api has a new token: Bearer, good for "), "\(run.output)")
        #expect(!run.transcript.contains("SEKRET"))
        #expect(admin.tokenEndpoint.requests.count == 2)
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        #expect(admin.origin.requests.last?.field("Authorization") == "Bearer \(accessToken)-1")
    }

    @Test func `a refusal is said with what to do, and the old token serves on`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([
                .token(accessToken), .error("invalid_client", status: 401, description: "not \(clientSecret)"),
            ]))
        try await admin.ready()
        let run = try await admin.run("refresh", "api")
        #expect(run.ending == .exited(1))
        #expect(run.output.isEmpty)
        for words in [
            "There is no new token: the token endpoint refuses this client: invalid_client", "stays in use",
            "What to do: check client_id, client_secret",
        ] { #expect(run.errors.contains(words), "\(run.errors)") }
        #expect(!run.transcript.contains("SEKRET"))
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
    }

    @Test func `many refreshes at once are one request, and never two within a second`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.token(accessToken)]))
        try await admin.ready()
        async let one = admin.run("refresh", "api")
        async let two = admin.run("refresh", "api")
        async let three = admin.run("refresh", "api")
        for run in try await [one, two, three] { #expect(run.ending == .exited(0), "\(run.transcript)") }
        let times = admin.tokenEndpoint.requests.map(\.at)
        #expect(admin.tokenEndpoint.mostAtOnce == 1)
        for (before, after) in zip(times, times.dropFirst()) {
            #expect(before.duration(to: after) > .milliseconds(900))
        }
    }

    @Test func `a server that never answers keeps places for those who only look`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken), TokenEndpointAnswer(manner: .silence)]))
        try await admin.ready()
        let refused = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await admin.run("refresh", "api").errors.contains("Too many requests wait for new tokens")
                }
            }
            var refused = 0
            for try await isRefused in group where isRefused { refused += 1 }
            return refused
        }
        #expect((1...4).contains(refused), "16 have a place")
    }

    @Test func `a server that wants a pause gets it, and nobody waits for that`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken), .status(503, fields: [("Retry-After", "600")])]))
        try await admin.ready()
        #expect(try await admin.run("refresh", "api").ending == .exited(1))
        let again = try await admin.run("refresh", "api")
        #expect(again.ending == .exited(1))
        #expect(again.errors.contains("The proxy tries again in 9 min"), "\(again.errors)")
        #expect(admin.tokenEndpoint.requests.count == 2)
    }

    @Test func `a client that needs somebody to sign in is told so`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        let run = try await admin.run("refresh", "api")
        #expect(run.ending == .exited(1))
        #expect(run.errors.contains("There is no new token: somebody has to sign in first"))
        #expect(run.errors.contains("/login/api"))
    }

    @Test func `a name that is nearly right is guessed`() async throws {
        let admin = try await AdministeredProxy()
        for verb in ["refresh", "token", "logout", "login"] {
            let run = try await admin.run(verb, "apy")
            #expect(run.ending == .exited(1))
            #expect(run.errors.hasPrefix("error: "), "\(verb): \(run.errors)")
            #expect(run.errors.contains("Did you mean api? Its clients: api."), "\(verb): \(run.errors)")
        }
        let far = try await admin.run("refresh", "something-else")
        #expect(far.errors.contains("no client of that name. Its clients: api."))
    }

    @Test func `the button of a refresh shows its outcome`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken), .token(accessToken), .error("invalid_scope")]))
        try await admin.ready()
        var browser = Browser(admin)
        let good = try await browser.press("/refresh/api")
        #expect(good.status == 200)
        #expect(good.text.contains("Client api has a new token: Bearer, good for "), "\(good.text)")
        let bad = try await browser.press("/refresh/api", Browser.own + [("Accept", "text/plain")])
        #expect(bad.status == 502)
        #expect(
            bad.text.contains("invalid_scope")
                && bad.text.contains("What to do: check scope for typing errors, and allow"), "\(bad.text)")
        #expect(!(good.text + bad.text).contains("SEKRET"))
    }
}
