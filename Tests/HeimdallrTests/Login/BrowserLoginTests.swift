import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `A login at a browser` {
    private static let callback = LoginServer.callback

    @Test("the authorization request carries all of it, keeps the endpoint's query, and PKCE is always S256")
    func request() async throws {
        let server = try LoginServer()
        server.giveToken()
        let client = try server.client {
            $0.scope = ["openid", "read write"]
            $0.resource = ["https://api.example.com/", "urn:b"]
            $0.audience = "https://api.example.com/?a=b&c"
            $0.parameters = [FormParameter("prompt", "consent & more")]
        }
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        #expect(attempt.url.hasPrefix(server.url + "/authorize?tenant=a&response_type=code&"))
        #expect(attempt.url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        let sent = ReadQuery(attempt.url)
        #expect(sent["client_id"] == "app")
        #expect(sent["redirect_uri"] == Self.callback)
        #expect(sent["state"] == attempt.state)
        #expect(attempt.state.count == 43)
        #expect(sent["nonce"]?.count == 43)
        #expect(sent["scope"] == "openid read write")
        #expect(sent["resource"] == "https://api.example.com/\nurn:b")
        #expect(sent["audience"] == "https://api.example.com/?a=b&c")
        #expect(sent["prompt"] == "consent & more")
        #expect(sent["code_challenge_method"] == "S256")
        let verifier = try #require(attempt.expectation.verifier?.revealed)
        #expect(try AuthorizationRequest.challenge(for: verifier) == sent["code_challenge"])
        #expect(!attempt.url.contains(verifier))
        let other = try await client.beginLogin(redirectURI: Self.callback)
        #expect(Set([attempt.state, verifier, other.state, other.expectation.verifier?.revealed]).count == 4)

        await #expect(throws: LoginError.idToken(.missing)) {
            try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        }
        let asked = try #require(server.requests("/token").last)
        let form = ReadQuery(query: asked.text)
        #expect(form["grant_type"] == "authorization_code")
        #expect(form["code"] == "C1")
        #expect(form["redirect_uri"] == Self.callback)
        #expect(form["code_verifier"] == verifier)
        #expect(form["client_id"] == "app")
        #expect(form["resource"] == "https://api.example.com/\nurn:b")
        #expect(form["scope"] == nil)
    }

    @Test("the challenge of PKCE is RFC 7636's own example")
    func challenge() throws {
        #expect(
            try AuthorizationRequest.challenge(for: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
                == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    }

    @Test("a confidential client authenticates as configured when it exchanges the code")
    func confidential() async throws {
        let server = try LoginServer()
        server.giveToken()
        try await server.logIn(try server.client(secret: "hush"))
        let asked = try #require(server.requests("/token").first)
        #expect(asked.field("Authorization") == "Basic YXBwOmh1c2g=")
        #expect(ReadQuery(query: asked.text)["client_secret"] == nil)
    }

    @Test("[43] logging in again sends no bearer token to the server")
    func noBearer() async throws {
        let server = try LoginServer()
        server.giveToken("the-old-token", more: #""refresh_token":"the-old-one-for-refreshes""#)
        let client = try server.client()
        try await server.logIn(client)
        server.giveToken("T2", more: #""refresh_token":"R2""#)
        try await server.logIn(client)
        #expect(client.currentToken()?.value == Secret("T2"))
        for request in server.requests("/token") {
            #expect(request.field("Authorization") == nil)
            #expect(!request.text.contains("the-old"))
        }
    }

    @Test("[61] no token and no code travels in a URL of ours, and nobody asks for user information")
    func noTokenInURL() async throws {
        let server = try LoginServer()
        server.giveToken()
        server[LoginServer.wellKnown] = .json(
            server.metadata(more: #""userinfo_endpoint":"\#(server.url)/userinfo""#))
        server["/revoke"] = LoginServer.Reply(status: 200)
        let client = try server.client()
        try await server.logIn(client)
        client.invalidateAccessToken()
        _ = try await client.accessToken(waiting: .seconds(10))
        _ = await client.logOut()
        #expect(server.targets == [LoginServer.wellKnown, "/token", "/token", "/revoke", "/revoke"])
    }

    // MARK: Attacks

    @Test("mix-up: an answer that names another issuer, or none where one is promised, gets no code sent anywhere")
    func mixUp() async throws {
        let server = try LoginServer()
        server.giveToken()
        server[LoginServer.wellKnown] = .json(
            server.metadata(more: #""authorization_response_iss_parameter_supported":true"#))
        let client = try server.client()
        for more in ["", "&iss=https%3A%2F%2Fevil.example", "&iss=\(server.issuer)%2F"] {
            await #expect(throws: LoginError.wrongIssuer) { try await server.logIn(client, more: more) }
        }
        #expect(server.requests("/token").isEmpty)
        try await server.logIn(client, more: "&iss=\(server.issuer)")
        #expect(client.hasAccessToken)
    }

    @Test("the code goes where the metadata said when the login began, whatever it says since")
    func moved() async throws {
        let server = try LoginServer()
        server.giveToken()
        let client = try server.client()
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        server[LoginServer.wellKnown] = .json(
            #"{"issuer":"\#(server.issuer)","token_endpoint":"\#(server.url)/evil"}"#)
        client.requests.directory.doubt()
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        #expect(server.requests("/evil").isEmpty)
        #expect(server.requests("/token").count == 1)
    }

    @Test("an attempt of another client, an old one, and one after the end are refused; no code is sent")
    func notOurs() async throws {
        let server = try LoginServer()
        server.giveToken()
        let clock = ManualClock()
        let client = try server.client(clock: clock.clock)
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        let other = try Heimdallr(
            name: "other", configuration: client.requests.configuration, credentials: client.requests.credentials,
            grant: InteractiveGrant(), httpClient: LoopbackHTTPClient())
        await #expect(throws: LoginError.wrongMethod) {
            try await other.finishLogin(attempt, redirectedTo: server.answer(attempt))
        }
        clock.advance(by: .seconds(600))
        await #expect(throws: LoginError.expired) {
            try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        }
        let next = try await client.beginLogin(redirectURI: Self.callback)
        client.shutdown()
        await #expect(throws: LoginError.stopped) {
            try await client.finishLogin(next, redirectedTo: server.answer(next))
        }
        #expect(server.requests("/token").isEmpty)
    }

    @Test("a token endpoint that fails is told as what it is, nothing is stored, and the old token stays")
    func faults() async throws {
        let server = try LoginServer()
        server.giveToken()
        let store = RecordingStore()
        let client = try server.client(store: store)
        try await server.logIn(client)
        for (reply, error) in [
            (LoginServer.Reply(status: 500), LoginError.endpoint(.status(500))),
            (LoginServer.Reply(status: 302, fields: [("Location", "/elsewhere")]), .endpoint(.redirect(302))),
            (.json("<!doctype html>"), .endpoint(.answer(.foreign(.webPage)))),
            (LoginServer.Reply(closes: true), .endpoint(.network(.cut))),
            (.json(#"{"access_token":"a\nb","token_type":"Bearer"}"#), .endpoint(.answer(.badAccessToken))),
            (.json(#"{"access_token":"T2"}"#), .endpoint(.answer(.noTokenType))),
            (.json(#"{"access_token":"T2","token_type":"mac"}"#), .endpoint(.answer(.unknownTokenType("mac")))),
            (
                .json(#"{"access_token":"T2","token_type":"Bearer","expires_in":0}"#),
                .endpoint(.answer(.alreadyExpired))
            ),
            (
                .json(#"{"error":"invalid_client","error_description":"T1 \u001b R1"}"#, status: 401),
                .refused(OAuthError(status: 401, code: .invalidClient, detail: "<redacted> ? <redacted>"))
            ),
        ] {
            server["/token"] = reply
            await #expect(throws: error) { try await server.logIn(client) }
        }
        #expect(await store.saves.count == 1)
        #expect(client.currentToken()?.value == Secret("T1"))
        #expect(client.status().state == .ready)
        #expect(!server.targets.contains("/elsewhere"))
    }

    @Test("[21] a login during a refresh makes one token request at a time, and its token stays")
    func race() async throws {
        let server = try LoginServer()
        server.giveToken("T1")
        let store = RecordingStore()
        let client = try server.client(store: store)
        try await server.logIn(client)
        var slow = LoginServer.Reply.json(
            #"{"access_token":"REFRESHED","token_type":"Bearer","expires_in":3600,"refresh_token":"R-refreshed"}"#)
        slow.delay = .milliseconds(500)
        server["/token"] = slow
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        client.invalidateAccessToken()
        let waiter = Task { try await client.accessToken(waiting: .seconds(20)) }
        _ = try await eventually("the refresh") {
            server.requests("/token").contains { $0.text.contains("refresh_token=R1") } ? true : nil
        }
        server.giveToken("NEW", more: #""refresh_token":"R-new""#)
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        _ = try await waiter.value
        #expect(client.currentToken()?.value == Secret("NEW"))
        #expect(await store.records["calendar"]?.refreshToken == Secret("R-new"))
        client.invalidateAccessToken()
        _ = try await client.accessToken(waiting: .seconds(20))
        #expect(server.requests("/token").last?.text.contains("refresh_token=R-new") == true)
    }

    @Test("[19] the token waits for its record, and the end of the process waits for the code that was sent")
    func durable() async throws {
        let server = try LoginServer()
        server.giveToken()
        let store = RecordingStore()
        await store.holdSaves()
        let client = try server.client(store: store)
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        let login = Task { try await client.finishLogin(attempt, redirectedTo: server.answer(attempt)) }
        _ = try await eventually("the exchange") { server.requests("/token").count == 1 ? true : nil }
        login.cancel()
        let drained = Task { await client.drain(within: .seconds(60)) }
        try await eventually("the save waits") { await store.isHeld }
        #expect(client.currentToken() == nil)
        #expect(client.isSpending)
        await store.releaseSaves()
        await drained.value
        try await login.value
        #expect(await store.records["calendar"]?.accessToken == Secret("T1"))
        #expect(client.hasAccessToken)
    }

    @Test("a sign-in at one process counts at the other that shares its store")
    func twoProcesses() async throws {
        let server = try LoginServer()
        server.giveToken()
        let folder = try FileStoreFolder()
        let clock = ManualClock()
        let here = try server.client(store: folder.store(), clock: clock.clock)
        let there = try server.client(store: folder.store(), clock: clock.clock)
        #expect(try await there.refusal() == .needsAuthentication)
        try await server.logIn(here)
        clock.advance(by: .seconds(5))
        #expect(try await there.refusal() == .needsAuthentication, "this one has it looked up")
        let token = try await eventually("the other's token") { there.currentToken() }
        #expect(token.value == Secret("T1"))
        #expect(server.requests("/token").count == 1)
    }

    @Test("[50] username and other fields of an implicit answer are kept with the token, through a restart")
    func implicitFields() async throws {
        let server = try LoginServer()
        let store = RecordingStore()
        let client = try server.client(.implicit, store: store) { $0.issuer = server.issuer }
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        #expect(ReadQuery(attempt.url)["response_type"] == "token")
        #expect(ReadQuery(attempt.url)["code_challenge"] == nil)
        try await client.finishLogin(
            attempt,
            redirectedTo: "\(Self.callback)#access_token=T%3D&expires_in=7199&username=guest&state=\(attempt.state)")
        let token = try #require(client.currentToken())
        #expect(token.value == Secret("T="))
        #expect(token.extra == ["username": .string("guest")])
        #expect(await store.records["calendar"]?.extra == ["username": .string("guest")])
        #expect(server.requests("/token").isEmpty)
    }

    @Test("the lifetime of a refresh token is told, and a client that is logged out forgets it")
    func refreshLife() async throws {
        let server = try LoginServer()
        server["/revoke"] = LoginServer.Reply(status: 200)
        let client = try server.client(clock: ManualClock().clock)
        for more in [
            #""refresh_token":"R1","refresh_token_expires_in":86400"#,
            #""refresh_token":"R1","refresh_expires_in":"86400""#,
        ] {
            server.giveToken(more: more)
            try await server.logIn(client)
            #expect(client.status().refreshTokenExpiresIn == .seconds(86_400))
        }
        server.giveToken(more: #""refresh_token":"R1","refresh_expires_in":0"#)
        try await server.logIn(client)
        #expect(client.status().refreshTokenExpiresIn == nil)
        #expect(client.currentToken()?.extra == [:])
        _ = await client.logOut()
        #expect(client.status().state == .needsAuthentication)
    }
}
