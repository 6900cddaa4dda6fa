import TestSupport
import Testing

@testable import Heimdallr

/// Logins at django-oauth-toolkit, which found its endpoints and wrote its pages without us.
@Suite(.timeLimit(.minutes(3))) struct `Logins at a real server` {
    /// One server for all tests. Each test has its own client, and counts no state of the server.
    private static let server = Task { try await DjangoOAuthToolkit() }
    private static let callback = "http://127.0.0.1:18081/callback"

    private func client(
        _ server: DjangoOAuthToolkit, _ method: LoginMethod, id: String, secret: String? = nil,
        scope: [String] = ["read", "openid"], store: any OAuthAccessTokenStore = OAuthAccessTokenMemoryStore(),
        _ change: (inout HeimdallrConfiguration) -> Void = { _ in }
    ) throws -> Heimdallr {
        var configuration = HeimdallrConfiguration(issuer: server.issuer)
        configuration.scope = scope
        configuration.allowPlaintext = true
        configuration.allowDeprecated = true
        configuration.revocationEndpoint = "\(server.url)/o/revoke_token/"
        change(&configuration)
        let credentials =
            secret.map { OAuthClientSecretCredentials(identifier: id, secret: Secret($0)) }
            ?? OAuthClientSecretCredentials(identifier: id)
        return try Heimdallr(
            name: "calendar", configuration: configuration, credentials: credentials, grant: InteractiveGrant(method),
            httpClient: LoopbackHTTPClient(), store: store)
    }

    /// The protected API's answer to the client's token.
    private func status(_ server: DjangoOAuthToolkit, _ client: Heimdallr) async throws -> Int {
        var request = HeimdallrHTTPRequest(url: "\(server.url)/api/me")
        try await client.authenticate(&request, waiting: .seconds(10))
        return try await LoopbackHTTPClient().send(request).status
    }

    @Test(
        "a login by code and PKCE, found by the issuer alone, lasts through refresh and restart, and ends",
        arguments: [(DjangoOAuthToolkit.browser.id, DjangoOAuthToolkit.browser.secret), (DjangoOAuthToolkit.app, nil)])
    func code(id: String, secret: String?) async throws {
        let server = try await Self.server.value
        let folder = try FileStoreFolder()
        let client = try client(server, .browser, id: id, secret: secret, store: folder.store())
        client.start()
        #expect(try await client.refusal() == .needsAuthentication)
        var events = client.events().makeAsyncIterator()
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        #expect(attempt.url.hasPrefix(server.authorizationEndpoint + "?"))
        #expect("\(attempt)" == "<redacted>")
        let back = try await server.authorize(attempt.url)
        #expect(back.hasPrefix(Self.callback + "?code="))
        try await client.finishLogin(attempt, redirectedTo: back)
        #expect(await events.next()?.name == "token_acquired")
        let signedIn = client.status()
        #expect(signedIn.state == .ready)
        #expect(signedIn.loginMethod == .browser)
        #expect(signedIn.signedInAs == DjangoOAuthToolkit.user.email)
        #expect(Set(signedIn.scope) == ["read", "openid"])
        #expect(signedIn.hasRefreshToken)
        #expect(try await status(server, client) == 200)

        await #expect(throws: LoginError.self, "a code is good once") {
            try await client.finishLogin(attempt, redirectedTo: back)
        }
        client.invalidateAccessToken()
        #expect(try await status(server, client) == 200, "refreshed")
        #expect(client.status().signedInAs == DjangoOAuthToolkit.user.email)
        client.shutdown()

        let next = try self.client(server, .browser, id: id, secret: secret, store: folder.store())
        #expect(try await status(server, next) == 200, "still signed in")
        #expect(next.status().signedInAs == DjangoOAuthToolkit.user.email)
        let old = try await next.accessToken().value
        #expect(try await folder.store().load(client: next.recordName)?.signIn?.idToken != nil)
        let report = await next.logOut()
        #expect(report.isComplete)
        #expect(next.status().signedInAs == nil)
        let left = try await folder.store().load(client: next.recordName)
        #expect(
            left?.signIn == nil && left?.refreshToken == nil && left?.accessToken == nil, "[59] the id token goes too")
        let dead = HeimdallrHTTPRequest(
            url: "\(server.url)/api/me",
            headers: [HeimdallrHTTPField(name: "Authorization", value: "Bearer \(old.revealed)")])
        #expect(try await LoopbackHTTPClient().send(dead).status == 401)
    }

    @Test("[28] [57] a refusal at the server is told at once, and nothing is stored")
    func denied() async throws {
        let server = try await Self.server.value
        let store = RecordingStore()
        let client = try client(server, .browser, id: DjangoOAuthToolkit.app, store: store)
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        let back = try await server.authorize(attempt.url, allowing: false)
        let error = await #expect(throws: LoginError.self) {
            try await client.finishLogin(attempt, redirectedTo: back)
        }
        guard case .refused(let said) = error else { throw TestFailure("\(String(describing: error))") }
        #expect(said.code == .accessDenied)
        #expect(await store.saves.isEmpty)
        #expect(client.currentToken() == nil)
    }

    @Test("a code that was issued to another login is refused: the verifier is not its own")
    func injection() async throws {
        let server = try await Self.server.value
        let client = try client(server, .browser, id: DjangoOAuthToolkit.app)
        let victim = try await client.beginLogin(redirectURI: Self.callback)
        let attacker = try await client.beginLogin(redirectURI: Self.callback)
        #expect(victim.state != attacker.state)
        let stolen = try await server.authorize(attacker.url)
        await #expect(throws: LoginError.wrongState) {
            try await client.finishLogin(victim, redirectedTo: stolen)
        }
        let injected = stolen.replacing("state=\(attacker.state)", with: "state=\(victim.state)")
        let error = await #expect(throws: LoginError.self) {
            try await client.finishLogin(victim, redirectedTo: injected)
        }
        guard case .refused(let said) = error else { throw TestFailure("\(String(describing: error))") }
        #expect(said.code == .invalidGrant)
        #expect(client.currentToken() == nil)
    }

    @Test("an address with a private scheme that a person pastes ends the login")
    func pasted() async throws {
        let server = try await Self.server.value
        let client = try client(server, .browser, id: DjangoOAuthToolkit.app)
        let attempt = try await client.beginLogin(redirectURI: "com.example.app:/oauth")
        try await client.finishLogin(attempt, redirectedTo: try await server.authorize(attempt.url))
        #expect(try await status(server, client) == 200)
    }

    @Test("[50] the fragment's token of an implicit answer is used, and what came with it is kept")
    func implicit() async throws {
        let server = try await Self.server.value
        let client = try client(server, .implicit, id: DjangoOAuthToolkit.old, scope: ["read"])
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        let back = try await server.authorize(attempt.url)
        #expect(back.hasPrefix(Self.callback + "#access_token="))
        try await client.finishLogin(attempt, redirectedTo: back)
        #expect(try await status(server, client) == 200)
        #expect(client.status().scope == ["read"])
        #expect(!client.status().hasRefreshToken)
    }

    @Test("[52] a refused implicit answer is a failure and no blank token")
    func implicitDenied() async throws {
        let server = try await Self.server.value
        let client = try client(server, .implicit, id: DjangoOAuthToolkit.old, scope: ["read"])
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        var events = client.events().makeAsyncIterator()
        let back = try await server.authorize(attempt.url, allowing: false)
        await #expect(throws: LoginError.refused(OAuthError(status: 302, code: .accessDenied))) {
            try await client.finishLogin(attempt, redirectedTo: back)
        }
        #expect(await events.next()?.name == "token_failed")
        #expect(client.currentToken() == nil)
    }

    @Test("a device login waits for the yes at another browser, and its token is refreshed")
    func device() async throws {
        let server = try await Self.server.value
        let client = try client(server, .device, id: DjangoOAuthToolkit.television, scope: ["read"]) {
            // Not in this server's OpenID Connect metadata.
            $0.deviceAuthorizationEndpoint = server.deviceAuthorizationEndpoint
        }
        let login = try await client.beginDeviceLogin()
        #expect(login.verificationURI == "\(server.url)/o/device/")
        #expect(login.verificationURIComplete?.hasSuffix(login.userCode) == true)
        let asked = server.tokenRequests
        let waiting = Task { try await client.finishDeviceLogin(login) }
        try await eventually("it asks") { server.tokenRequests > asked }
        #expect(client.currentToken() == nil)
        try await server.authorizeDevice(at: login.verificationURI, code: login.userCode)
        try await waiting.value
        #expect(try await status(server, client) == 200)
        client.invalidateAccessToken()
        #expect(try await status(server, client) == 200)
    }

    @Test("a device login ends with the no at the other browser, and with its caller")
    func deviceDenied() async throws {
        let server = try await Self.server.value
        let client = try client(server, .device, id: DjangoOAuthToolkit.television, scope: ["read"]) {
            $0.deviceAuthorizationEndpoint = server.deviceAuthorizationEndpoint
        }
        let login = try await client.beginDeviceLogin()
        try await server.authorizeDevice(at: login.verificationURI, code: login.userCode, allowing: false)
        let error = await #expect(throws: LoginError.self) { try await client.finishDeviceLogin(login) }
        guard case .refused(let said) = error else { throw TestFailure("\(String(describing: error))") }
        #expect(said.code == .accessDenied)
        let other = try await client.beginDeviceLogin()
        let waiting = Task { try await client.finishDeviceLogin(other) }
        waiting.cancel()
        await #expect(throws: LoginError.cancelled) { try await waiting.value }
        #expect(client.currentToken() == nil)
    }

    @Test("a login by typed user name and password keeps only the tokens, refreshed without asking again")
    func password() async throws {
        let server = try await Self.server.value
        let store = RecordingStore()
        let client = try client(
            server, .password, id: DjangoOAuthToolkit.publicClient, scope: ["read"], store: store)
        await #expect(throws: LoginError.self) {
            try await client.login(username: DjangoOAuthToolkit.user.name, password: Secret("wrong"))
        }
        #expect(await store.saves.isEmpty)
        try await client.login(
            username: DjangoOAuthToolkit.user.name, password: Secret(DjangoOAuthToolkit.user.password))
        #expect(try await status(server, client) == 200)
        client.invalidateAccessToken()
        #expect(try await status(server, client) == 200)
        #expect(await store.saves.count == 2)
    }

    @Test("a client that needs nobody finds its token endpoint by the issuer too")
    func machine() async throws {
        let server = try await Self.server.value
        var configuration = HeimdallrConfiguration(issuer: server.issuer)
        configuration.allowPlaintext = true
        configuration.scope = ["read"]
        let client = try Heimdallr(
            configuration: configuration,
            credentials: OAuthClientSecretCredentials(
                identifier: DjangoOAuthToolkit.machine.id, secret: Secret(DjangoOAuthToolkit.machine.secret)),
            httpClient: LoopbackHTTPClient())
        #expect(try await status(server, client) == 200)
        #expect(client.loginMethod == nil)
        await #expect(throws: LoginError.wrongMethod) { try await client.beginLogin(redirectURI: Self.callback) }
    }
}
