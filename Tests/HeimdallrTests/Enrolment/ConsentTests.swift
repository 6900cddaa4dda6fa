import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Consent to what an API's documents say` {
    private static let plain = #""registration_endpoint":"%/register","code_challenge_methods_supported":["S256"]"#

    /// A change of a document after the page was shown.
    enum Change: CaseIterable {
        case resource, issuer, endpoint, alias, scope, clientWanted, clientDocument

        var parts: [SignInOffer.Part] {
            switch self {
            case .resource: [.resource]
            case .issuer: [.issuer, .endpoints]
            case .endpoint, .alias: [.endpoints]
            case .scope: [.scope]
            case .clientWanted: [.endpoints, .client]
            case .clientDocument: [.client]
            }
        }

        func make(_ api: EnrollingServer, _ other: EnrollingServer) {
            switch self {
            case .resource: api.publish(resource: api.server.url)
            case .issuer: api.publish(issuers: [other.issuer])
            case .endpoint: api.describe(plain + #","userinfo_endpoint":"https://evil.example/u""#)
            case .alias: api.describe(plain + #","mtls_endpoint_aliases":{"token_endpoint":"https://evil.example/t"}"#)
            case .scope: api.publish(more: #""scopes_supported":["everything"]"#)
            case .clientWanted: api.describe(#""code_challenge_methods_supported":["S256"]"#)
            case .clientDocument: api.describe(plain + #","client_id_metadata_document_supported":true"#)
            }
        }
    }

    private func client(_ api: EnrollingServer) throws -> Heimdallr {
        try api.client { $0.clientDocument = "https://ops.example/c.json" }
    }

    @Test(
        "a consent is for one offer: each change afterwards is named, and nothing is sent", arguments: Change.allCases)
    func changes(_ change: Change) async throws {
        let (api, other) = (try EnrollingServer(), try EnrollingServer())
        let shown = try await client(api).signInOffer(redirectURI: LoginServer.callback)
        let consent = try #require(shown.consent)
        change.make(api, other)
        // The former metadata would be kept for an hour: another process of a fleet reads it anew.
        let client = try client(api)
        let expected = LoginError.offerChanged(change.parts)
        await #expect(throws: expected) {
            try await client.beginLogin(redirectURI: LoginServer.callback, agreed: consent)
        }
        await #expect(throws: expected) {
            try await client.useClient(
                identifier: "typed", secret: Secret("s3cret"), redirectURI: LoginServer.callback, agreed: consent)
        }
        await #expect(throws: expected) {
            try await client.forgetRegistration(redirectURI: LoginServer.callback, agreed: consent)
        }
        #expect(client.requests.enroller?.enrolment == nil)
        for server in [api, other] {
            #expect(server.registrations == 0 && server.server.requests("/token").isEmpty)
        }
        let renewed = try #require(try await client.signInOffer(redirectURI: LoginServer.callback).consent)
        if change == .clientWanted {
            try await client.useClient(
                identifier: "typed", secret: nil, redirectURI: LoginServer.callback, agreed: renewed)
        } else {
            _ = try await client.beginLogin(redirectURI: LoginServer.callback, agreed: renewed)
        }
    }

    @Test("a consent holds after a registration, and is no other text")
    func same() async throws {
        let api = try EnrollingServer()
        let client = try api.client()
        let consent = try #require(try await client.signInOffer(redirectURI: LoginServer.callback).consent)
        for _ in 0..<2 { _ = try await client.beginLogin(redirectURI: LoginServer.callback, agreed: consent) }
        #expect(api.registrations == 1)
        let offer = try await client.signInOffer(redirectURI: LoginServer.callback)
        #expect(offer.client == .known("registered-1"))
        for text in ["", "....", consent + ".", String(consent.dropLast()), "\(consent)\n"] {
            #expect(!offer.changes(since: text).isEmpty, "\(text)")
        }
        // Scopes that run into each other are other scopes.
        var (one, two) = (offer, offer)
        (one.scope, two.scope) = (["ab", "c"], ["a", "bc"])
        #expect(one.changes(since: try #require(two.consent)) == [.scope])
    }

    @Test("demands of the API about the person's authentication are part of the offer and of the consent")
    func authentication() async throws {
        let api = try EnrollingServer()
        let client = try api.client()
        let consent = try #require(try await client.signInOffer(redirectURI: LoginServer.callback).consent)
        for (acrValues, maxAge) in [("mfa", nil), (nil, "60")] as [(String?, String?)] {
            client.challenged(
                ResourceChallenge(
                    url: api.api, error: "insufficient_user_authentication", acrValues: acrValues, maxAge: maxAge),
                hadToken: true)
            await #expect(throws: LoginError.offerChanged([.authentication])) {
                try await client.beginLogin(redirectURI: LoginServer.callback, agreed: consent)
            }
            let offer = try await client.signInOffer(redirectURI: LoginServer.callback)
            #expect(offer.acrValues == acrValues && offer.maxAge == maxAge.flatMap { Int($0) })
            #expect(api.registrations == (acrValues == nil ? 1 : 0))
            let query = ReadQuery(
                try await client.beginLogin(redirectURI: LoginServer.callback, agreed: offer.consent).url)
            #expect(query["acr_values"] == acrValues && query["max_age"] == maxAge)
        }
    }

    @Test("a client that can't be sent is refused, and none is kept")
    func badClients() async throws {
        let client = try EnrollingServer().client()
        let long = String(repeating: "a", count: 2049)
        for (identifier, secret) in [("", "s"), ("a\r\nX: y", "s"), ("é", "s"), (long, "s"), ("a", ""), ("a", long)] {
            await #expect(throws: LoginError.badClient) {
                try await client.useClient(
                    identifier: identifier, secret: Secret(secret), redirectURI: LoginServer.callback)
            }
        }
        #expect(client.requests.enroller?.enrolment == nil)
    }

    private func move(_ clock: ManualClock, from old: EnrollingServer, to new: EnrollingServer, _ client: Heimdallr) {
        new.server[EnrollingServer.registration] = .json(#"{"client_id":"registered-9"}"#, status: 201)
        new.server.giveToken("T9", more: #""refresh_token":"R9""#)
        old.publish(issuers: [new.issuer])
        client.challenged(ResourceChallenge(url: old.api), hadToken: true)
        clock.advance(by: .seconds(2))
    }

    @Test("a sign-in that begins, is refused or fails leaves the tokens and the client of the last one")
    func unfinished() async throws {
        let (old, new, clock) = (try EnrollingServer(), try EnrollingServer(), ManualClock())
        let client = try old.client(clock: clock.clock)
        try await old.logIn(client)
        move(clock, from: old, to: new, client)
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        #expect(attempt.url.hasPrefix(new.server.url))
        new.server["/token"] = .json(#"{"error":"invalid_grant"}"#, status: 400)
        await #expect(throws: LoginError.self) {
            try await client.finishLogin(attempt, redirectedTo: new.server.answer(attempt))
        }
        #expect(client.currentToken()?.value == Secret("T1"))
        #expect(client.status().issuer == old.issuer)
        // The API names the former server again: its refresh token still serves.
        old.publish()
        client.challenged(ResourceChallenge(url: old.api), hadToken: true)
        clock.advance(by: .seconds(2))
        old.server.giveToken("T2")
        #expect(try await client.refreshedToken().value == Secret("T2"))
        #expect(old.tokenForms.last?["client_id"] == "registered-1")
        #expect(new.tokenForms.allSatisfy { $0["refresh_token"] == nil })
    }

    @Test("a client that the server forgets between the halves of a sign-in is not used for the next one")
    func forgotten() async throws {
        let api = try EnrollingServer()
        let client = try api.client()
        try await api.logIn(client)
        client.challenged(
            ResourceChallenge(url: api.api, scope: "write", error: "insufficient_scope"), hadToken: true)
        _ = try await client.beginLogin(redirectURI: LoginServer.callback)
        api.server["/token"] = .json(#"{"error":"invalid_client"}"#, status: 401)
        await #expect(throws: HeimdallrError.self) { try await client.refreshedToken() }
        #expect(try await client.signInOffer(redirectURI: LoginServer.callback).client == .registered)
    }

    @Test("another process ends the sign-in at a new server, and both then use its client; one registration")
    func elsewhere() async throws {
        let (old, new, clock) = (try EnrollingServer(), try EnrollingServer(), ManualClock())
        let store = SharedMemoryStore(waits: true)
        let clients = try (0..<2).map { _ in try old.client(store: store, clock: clock.clock) }
        for client in clients { client.start() }
        try await old.logIn(clients[0])
        try await eventually("the first sign-in") { clients[1].currentToken()?.value == Secret("T1") }
        move(clock, from: old, to: new, clients[0])
        let attempt = try await clients[0].beginLogin(redirectURI: LoginServer.callback)
        clients[1].challenged(ResourceChallenge(url: old.api), hadToken: true)
        _ = try await clients[1].beginLogin(redirectURI: LoginServer.callback)
        #expect(new.registrations == 1)
        #expect(clients.allSatisfy { $0.currentToken()?.value == Secret("T1") })
        try await clients[1].finishLogin(attempt, redirectedTo: new.server.answer(attempt))
        for client in clients {
            try await eventually("the new token everywhere") { client.currentToken()?.value == Secret("T9") }
            #expect(client.status().issuer == new.issuer)
        }
        _ = try await clients[0].refreshedToken()
        #expect(new.tokenForms.last?["client_id"] == "registered-9")
        #expect(new.tokenForms.last?["refresh_token"] == "R9")
        for client in clients { client.shutdown() }
    }
}
