import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Two processes, one store, and an API whose server has changed` {
    private let store = SharedMemoryStore(waits: true)
    private let (old, new): (EnrollingServer, EnrollingServer)

    init() throws {
        (old, new) = (try EnrollingServer(), try EnrollingServer())
        new.server[EnrollingServer.registration] = .json(#"{"client_id":"registered-9"}"#, status: 201)
        new.server.giveToken("T9", more: #""refresh_token":"R9""#)
        for server in [old.server, new.server] { server["/revoke"] = .json("{}") }
    }

    /// One process signs in at the old server, then another one at the new server.
    private func signIns(_ between: (Heimdallr) async throws -> Void) async throws -> (
        first: Heimdallr, second: Heimdallr
    ) {
        let first = try old.client(store: store)
        try await old.logIn(first)
        try await between(first)
        old.publish(issuers: [new.issuer])
        let second = try old.client(store: store)
        second.start()
        let attempt = try await second.beginLogin(redirectURI: LoginServer.callback)
        try await second.finishLogin(attempt, redirectedTo: new.server.answer(attempt))
        return (first, second)
    }

    /// No token or client of one server was shown to the other.
    private func expectNoMix() {
        for path in ["/token", "/revoke"] {
            #expect(old.shown(in: path).isDisjoint(with: ["R9", "T9", "registered-9"]))
            #expect(new.shown(in: path).isDisjoint(with: ["R1", "T1", "registered-1"]))
        }
    }

    @Test("notes that were never saved don't keep the former server: tokens are taken up with their server and client")
    func unsavedNotes() async throws {
        let (first, second) = try await signIns { client in
            client.start()
            for _ in 0..<3 { _ = client.requests.enroller?.clientRefused() }
            client.watchStore()
        }
        try await eventually("the other process's token") { first.currentToken()?.value == Secret("T9") }
        #expect(first.status().issuer == new.issuer)
        #expect(try await first.refreshedToken().value == Secret("T9"))
        #expect(new.tokenForms.last?["refresh_token"] == "R9")
        #expect(new.tokenForms.last?["client_id"] == "registered-9")
        expectNoMix()
        for client in [first, second] { client.shutdown() }
    }

    @Test("a refresh under the lease finds the other process's tokens, and sends nothing to the former server")
    func unnoticed() async throws {
        let (first, second) = try await signIns { _ = $0.requests.enroller?.clientRefused() }
        #expect(first.currentToken()?.value == Secret("T1"), "no news has come")
        _ = try await first.refreshedToken()
        #expect(first.currentToken()?.value == Secret("T9"))
        #expect(old.tokenForms.count == 1)
        expectNoMix()
        for client in [first, second] { client.shutdown() }
    }

    @Test("a sign-out revokes the other process's tokens at their own server")
    func signOut() async throws {
        let (first, second) = try await signIns { _ = $0.requests.enroller?.clientRefused() }
        #expect(await first.logOut().isComplete)
        #expect(old.server.requests("/revoke").isEmpty)
        #expect(new.server.requests("/revoke").map { ReadQuery(query: $0.text)["token"] } == ["R9", "T9"])
        expectNoMix()
        for client in [first, second] { client.shutdown() }
    }

    @Test("tokens without their server, or with a server that can't be read, are never used")
    func unknownServer() async throws {
        for enrolment in [nil, Secret("{}")] {
            var record = TokenRecord(
                revision: 9, accessToken: Secret("T0"), issuedAt: 0, expiresAt: .max, refreshToken: Secret("R0"))
            record.enrolment = enrolment
            store.put(record, "mcp")
            let client = try old.client(store: store)
            client.start()
            try await eventually("the record") { client.look { $0.revision } == 9 }
            #expect(client.currentToken() == nil)
            #expect(client.look { $0.refreshToken } == nil)
            client.shutdown()
        }
    }

    @Test("a token of another server replaces the refresh token, too, even if the answer brings none")
    func kept() throws {
        func enrolment(_ issuer: String) -> Enrolment {
            Enrolment(
                resource: nil, issuer: issuer, scope: [],
                client: Enrolment.Client(identifier: "i", method: .configured, source: .configured))
        }
        for (issuer, kept) in [("https://a", Secret("R1")), ("https://b", nil)] {
            var driven = DrivenLifeCycle()
            var record = driven.record(nil, refreshToken: "R1")
            record.enrolment = enrolment("https://a").stored
            driven.start(stored: record)
            // Two refusals without a cause make the refresh token doubtful.
            for _ in 0..<2 {
                #expect(driven.fetch?.kind == .refresh(Secret("R1")))
                driven.answer(DrivenLifeCycle.status(400))
                driven.pass(3)
            }
            #expect(driven.fetch?.kind == .grant)
            var response = TokenResponse(accessToken: Secret("T2"), tokenType: "Bearer", expiresIn: 60)
            response.enrolment = enrolment(issuer)
            let answered = driven.answer(.response(response))
            let saved = try #require(answered)
            #expect(saved.refreshToken == kept)
            #expect(saved.enrolment == response.enrolment?.stored)
            #expect(driven.life.refreshToken == kept)
        }
    }

    @Test("id tokens of the new server are checked with its own keys, right after the change")
    func keys() async throws {
        let clock = ManualClock()
        let client = try old.client(clock: clock.clock)
        for api in [old, new] {
            old.publish(issuers: [api.issuer], more: #""scopes_supported":["openid"]"#)
            client.challenged(ResourceChallenge(url: old.api), hadToken: true)
            clock.advance(by: .seconds(2))
            let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
            let now = clock.clock.wallClock()
            let signed = try await SignedIDToken(claims: [
                "iss": api.issuer, "aud": try #require(ReadQuery(attempt.url)["client_id"]), "sub": "ada",
                "exp": now + 300, "iat": now, "nonce": try #require(attempt.expectation.nonce),
            ])
            api.server["/keys"] = .json(signed.keys)
            api.server.giveToken(more: #""refresh_token":"R","id_token":"\#(signed.token)""#)
            try await client.finishLogin(attempt, redirectedTo: api.server.answer(attempt))
            #expect(client.status().issuer == api.issuer)
        }
    }

    @Test("a record carries the server and client of its tokens, and a refresh token goes nowhere else")
    func owner() throws {
        func enrolment(_ issuer: String, _ identifier: String = "i") -> Enrolment {
            Enrolment(
                resource: nil, issuer: issuer, scope: [],
                client: Enrolment.Client(identifier: identifier, method: .none, source: .registered))
        }
        let (own, other) = (enrolment("https://a"), enrolment("https://b"))
        var driven = DrivenLifeCycle(needs: .person)
        var record = driven.record("T1", refreshToken: "R1")
        record.enrolment = own.stored
        driven.start(stored: record)
        #expect(driven.enrolments == [own])
        #expect(driven.life.record(nil, driven.moment).enrolment == own.stored)
        func fault(_ token: String, _ enrolment: Enrolment?) -> DiscoveryFault? {
            driven.life.fault(of: .refresh(Secret(token)), at: enrolment)
        }
        #expect(fault("R1", own) == nil)
        #expect(fault("R1", nil) == nil, "a configured client")
        #expect(fault("R1", other) == .movedIssuer(from: "https://a", to: "https://b"))
        #expect(fault("R1", enrolment("https://a", "j")) == .clientForgotten)
        #expect(fault("R0", own) == .notEnrolled)
    }
}
