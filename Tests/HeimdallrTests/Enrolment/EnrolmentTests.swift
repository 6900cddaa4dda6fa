import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `An API that names its server itself` {
    @Test("one sign-in sends documents, registration, code and refresh, each with the resource as published")
    func wholeWay() async throws {
        let api = try EnrollingServer()
        api.publish(resource: api.server.url + "/mcp/", more: #""scopes_supported":["read","write"]"#)
        let client = try api.client()
        let query = try await api.logIn(client)
        #expect(query["client_id"] == "registered-1")
        #expect(query["scope"] == "read write")
        #expect(query["resource"] == api.server.url + "/mcp/", "byte for byte")
        #expect(query["code_challenge_method"] == "S256")
        let form = try #require(api.tokenForms.first)
        #expect(form["resource"] == api.server.url + "/mcp/")
        #expect(form["client_id"] == "registered-1")
        #expect(client.currentToken()?.value == Secret("T1"))
        _ = try await client.refreshedToken()
        let refresh = try #require(api.tokenForms.last)
        #expect(refresh["grant_type"] == "refresh_token")
        #expect(refresh["resource"] == api.server.url + "/mcp/")
        #expect(refresh["scope"] == "read write")
        let status = client.status()
        #expect(status.issuer == api.issuer)
        #expect(status.enrolment?.client == "registered")
        #expect(status.enrolment?.document == api.server.url + EnrollingServer.resourcePath)
        let registration = try #require(api.server.requests(EnrollingServer.registration).first)
        for part in [
            #""application_type":"native""#, #""token_endpoint_auth_method":"none""#,
            #""grant_types":["authorization_code","refresh_token"]"#,
            #""redirect_uris":["http://127.0.0.1:18081/callback","http://localhost:18081/callback"]"#,
        ] {
            #expect(registration.text.replacing("\\/", with: "/").contains(part), "\(part) in \(registration.text)")
        }
    }

    @Test("the challenge's address and scopes count before the well-known ones")
    func challenge() async throws {
        let api = try EnrollingServer()
        api.publish(more: #""scopes_supported":["read"]"#)
        api.server["/elsewhere"] = api.server[EnrollingServer.resourcePath]
        let client = try api.client()
        client.challenged(
            ResourceChallenge(url: api.api + "/tools", metadata: api.server.url + "/elsewhere", scope: "list"),
            hadToken: false)
        #expect(try await api.logIn(client)["scope"] == "list")
        #expect(api.server.requests(EnrollingServer.resourcePath).isEmpty)
        #expect(api.server.requests("/elsewhere").count == 1)
    }

    @Test("a challenge of another origin than the API's is ignored")
    func foreignChallenge() async throws {
        let (api, other) = (try EnrollingServer(), try EnrollingServer())
        let client = try api.client()
        try await api.logIn(client)
        for error in [nil, "insufficient_scope", "insufficient_user_authentication"] {
            client.challenged(
                ResourceChallenge(url: other.api, metadata: other.server.url + "/doc", scope: "all", error: error),
                hadToken: true)
        }
        #expect(client.status().enrolment?.missingScopes == [])
        #expect(client.status().enrolment?.wantsAuthentication == false)
        let offer = try await client.signInOffer(redirectURI: LoginServer.callback)
        #expect(offer.issuer == api.issuer && offer.scope == [])
        #expect(other.server.targets.isEmpty)
    }

    @Test("the document at the root serves every path")
    func root() async throws {
        let api = try EnrollingServer()
        api.publish(resource: api.server.url)
        api.server["/.well-known/oauth-protected-resource"] = api.server[EnrollingServer.resourcePath]
        api.server[EnrollingServer.resourcePath] = LoginServer.Reply(status: 404)
        #expect(try await api.logIn(try api.client())["resource"] == api.server.url)
    }

    @Test("the chain's first broken link is the error, and nothing is sent to the server")
    func broken() async throws {
        let api = try EnrollingServer()
        func fault(
            _ change: (inout EnrolmentSettings) -> Void = { _ in }
        ) async throws -> DiscoveryFault? {
            let client = try api.client(change)
            do { _ = try await client.beginLogin(redirectURI: LoginServer.callback) } catch LoginError.discovery(
                let fault)
            {
                #expect(client.status().enrolment?.fault == fault)
                return fault
            }
            return nil
        }
        api.publish(resource: "http://127.0.0.1:1/mcp")
        #expect(try await fault() == .otherResource("http://127.0.0.1:1/mcp"))
        api.publish(issuers: [])
        #expect(try await fault() == .noIssuer)
        api.publish(issuers: ["https://a.example", "https://b.example"])
        #expect(try await fault() == .severalIssuers(["https://a.example", "https://b.example"]))
        api.publish()
        #expect(
            try await fault { $0.issuer = api.issuer + "/" }
                == .unlistedIssuer(api.issuer + "/", listed: [api.issuer]))
        api.describe(#""registration_endpoint":"%/register""#)
        #expect(try await fault() == .noPKCE)
        api.describe(#""code_challenge_methods_supported":["plain"]"#)
        #expect(try await fault() == .otherPKCE)
        api.describe(#""code_challenge_methods_supported":["S256"]"#)
        #expect(try await fault() == .clientWanted)
        api.server[LoginServer.wellKnown + "/as"] = .json(api.server.metadata(issuer: api.issuer + "/"))
        #expect(try await fault() == .server(api.issuer, .otherIssuer(api.issuer + "/")))
        api.server[EnrollingServer.resourcePath] = LoginServer.Reply(status: 302, fields: [("Location", "/x")])
        #expect(
            try await fault() == .noResource(404, api.server.url + "/.well-known/oauth-protected-resource"))
        api.server[EnrollingServer.resourcePath] = LoginServer.Reply(flood: 70_000)
        #expect(
            try await fault()
                == .unreachable(.resource, api.server.url + EnrollingServer.resourcePath, .bodyTooLarge))
        #expect(api.registrations == 0)
        #expect(api.server.requests("/token").isEmpty)
        #expect(!api.server.targets.contains("/x"))
    }

    @Test("a client is registered once, through further sign-ins, a logout, and a restart with a store")
    func once() async throws {
        let api = try EnrollingServer()
        let store = OAuthAccessTokenMemoryStore()
        let client = try api.client(store: store)
        try await api.logIn(client)
        try await api.logIn(client)
        let report = await client.logOut(locally: true)
        #expect(report.isComplete)
        #expect(client.currentToken() == nil)
        client.shutdown()
        let next = try api.client(store: store)
        next.start()
        try await api.logIn(next)
        #expect(api.registrations == 1)
        next.shutdown()
        let last = try api.client(store: store)
        last.start()
        #expect(try await last.accessToken().value == Secret("T1"))
        _ = try await last.refreshedToken()
        #expect(api.tokenForms.last?["client_id"] == "registered-1")
        #expect(api.tokenForms.last?["resource"] == api.api)
        #expect(api.server.requests(EnrollingServer.resourcePath).count >= 2)
    }

    @Test("after a restart a sign-in finds the same document, without another refusal of the API")
    func restarted() async throws {
        let api = try EnrollingServer()
        let store = OAuthAccessTokenMemoryStore()
        func client() throws -> Heimdallr { try api.client(store: store) { $0.resource = api.server.url } }
        let first = try client()
        first.challenged(ResourceChallenge(url: api.api + "/tools"), hadToken: false)
        api.server[EnrollingServer.resourcePath + "/tools"] = api.server[EnrollingServer.resourcePath]
        #expect(try await api.logIn(first)["resource"] == api.api)
        first.shutdown()
        let next = try client()
        next.start()
        #expect(try await api.logIn(next)["resource"] == api.api)
        #expect(api.registrations == 1)
    }

    @Test("five processes on one store register once, and each can end the login that another began")
    func fleet() async throws {
        let api = try EnrollingServer()
        let store = SharedMemoryStore(waits: true)
        let clients = try (0..<5).map { _ in try api.client(store: store) }
        for client in clients { client.start() }
        let attempts = try await withThrowingTaskGroup(of: LoginAttempt.self) { group in
            for client in clients {
                group.addTask { try await client.beginLogin(redirectURI: LoginServer.callback) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(api.registrations == 1)
        #expect(Set(attempts.map { ReadQuery($0.url)["client_id"] }) == ["registered-1"])
        let attempt = try #require(attempts.first)
        let other = try #require(clients.last)
        try await other.finishLogin(attempt, redirectedTo: api.server.answer(attempt))
        for client in clients {
            _ = try await eventually("the token everywhere") {
                client.currentToken()?.value == Secret("T1") ? true : nil
            }
        }
        for client in clients { client.shutdown() }
    }

    @Test("after invalid_client the client is registered anew at the next sign-in, once, then after an hour")
    func forgotten() async throws {
        let api = try EnrollingServer()
        let client = try api.client()
        try await api.logIn(client)
        api.server["/token"] = .json(#"{"error":"invalid_client"}"#, status: 401)
        api.server[EnrollingServer.registration] = .json(#"{"client_id":"registered-2"}"#, status: 201)
        await #expect(throws: HeimdallrError.self) { try await client.refreshedToken() }
        _ = try await eventually("the need of a sign-in") {
            client.status().cause == .discovery(.clientForgotten) ? true : nil
        }
        let second = try await client.beginLogin(redirectURI: LoginServer.callback)
        #expect(ReadQuery(second.url)["client_id"] == "registered-2")
        await #expect(throws: LoginError.discovery(.clientForgotten)) {
            try await client.finishLogin(second, redirectedTo: api.server.answer(second))
        }
        do {
            _ = try await client.beginLogin(redirectURI: LoginServer.callback)
            Issue.record("registered a third time")
        } catch LoginError.discovery(.registeredLately) {}
        #expect(api.registrations == 2)
    }

    @Test("with another issuer in the document the former client and tokens are retired, and never shown to it")
    func moved() async throws {
        let (old, new) = (try EnrollingServer(), try EnrollingServer())
        new.server[EnrollingServer.registration] = .json(#"{"client_id":"registered-9"}"#, status: 201)
        new.server.giveToken("T9", more: #""refresh_token":"R9""#)
        let clock = ManualClock()
        let client = try old.client(clock: clock.clock)
        try await old.logIn(client)
        old.publish(issuers: [new.issuer])
        // The API refuses the token: its metadata is read again before the refresh.
        client.challenged(ResourceChallenge(url: old.api), hadToken: true)
        clock.advance(by: .seconds(2))
        await #expect(throws: HeimdallrError.self) { try await client.refreshedToken() }
        let moved = DiscoveryFault.movedIssuer(from: old.issuer, to: new.issuer)
        #expect(client.status().cause == .discovery(moved))
        #expect(client.status().needsAuthenticationBecause?.contains(old.issuer) == true)
        #expect(client.status().needsAuthenticationBecause?.contains(new.issuer) == true)
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        #expect(attempt.url.hasPrefix(new.server.url))
        #expect(ReadQuery(attempt.url)["client_id"] == "registered-9")
        #expect(client.currentToken()?.value == Secret("T1"), "until the new sign-in succeeds")
        try await client.finishLogin(attempt, redirectedTo: new.server.answer(attempt))
        #expect(client.currentToken()?.value == Secret("T9"))
        #expect(new.shown(in: "/token").isDisjoint(with: ["R1", "T1", "registered-1"]))
    }

    @Test("a configured client is never shown to another issuer, unless the operator names it")
    func configuredMoved() async throws {
        let (old, new) = (try EnrollingServer(), try EnrollingServer())
        let (clock, store) = (ManualClock(), OAuthAccessTokenMemoryStore())
        let unattended = try old.client(clock: clock.clock, identifier: "reports", grant: ClientCredentialsGrant())
        _ = try await unattended.accessToken()
        let client = try old.client(store: store, clock: clock.clock, identifier: "reports")
        try await old.logIn(client)
        old.publish(issuers: [new.issuer])
        let moved = DiscoveryFault.movedIssuer(from: old.issuer, to: new.issuer)
        for client in [unattended, client] { client.challenged(ResourceChallenge(url: old.api), hadToken: true) }
        clock.advance(by: .seconds(2))
        let waiting = Task { try? await unattended.refreshedToken() }
        try await eventually("the fault") { unattended.status().enrolment?.fault == moved }
        unattended.shutdown()
        #expect(await waiting.value == nil)
        await #expect(throws: LoginError.discovery(moved)) {
            try await client.beginLogin(redirectURI: LoginServer.callback)
        }
        #expect(new.server.requests("/token").isEmpty)
        client.shutdown()
        let named = try old.client(store: store, clock: clock.clock, identifier: "reports") { $0.issuer = new.issuer }
        #expect(try await named.beginLogin(redirectURI: LoginServer.callback).url.hasPrefix(new.server.url))
    }

    @Test("a code is not sent when the server has changed between the two halves of a login")
    func movedMidway() async throws {
        let (old, new) = (try EnrollingServer(), try EnrollingServer())
        let client = try old.client()
        let first = try await client.beginLogin(redirectURI: LoginServer.callback)
        old.publish(issuers: [new.issuer])
        client.challenged(ResourceChallenge(url: old.api), hadToken: true)
        _ = try await client.beginLogin(redirectURI: LoginServer.callback)
        await #expect(throws: LoginError.reconfigured) {
            try await client.finishLogin(first, redirectedTo: old.server.answer(first))
        }
        #expect(old.server.requests("/token").isEmpty && new.server.requests("/token").isEmpty)
    }
}
