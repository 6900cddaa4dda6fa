import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Token endpoints as public reports describe them` {
    @Test("an answer means what its server means by it", arguments: PlayedServer.all)
    func meaning(of server: PlayedServer) async throws {
        let endpoint = try TokenEndpoint([server.answer])
        let client = try makeClient(endpoint, clock: ManualClock(chance: 0.9).clock)
        defer { client.shutdown() }
        if case .token(let value) = server.meaning {
            #expect(try await client.accessToken().value == Secret(value))
            return
        }
        let fault = try #require(try await client.refusal().fault)
        let verdict = TokenLifeCycle.verdict(on: fault)
        switch server.meaning {
        case .token: break
        case .refused(let words):
            #expect(verdict == .refused)
            #expect(fault.description.contains(words), "\(fault)")
        case .dead: #expect(verdict == .grantGone)
        case .client(let words):
            #expect(verdict == .other && fault.looksPermanent)
            #expect(fault.description.contains(words), "\(fault)")
        case .passing(let words):
            #expect(verdict == .other && !fault.looksPermanent, "\(fault)")
            #expect(fault.description.contains(words), "\(fault)")
        case .other(let words):
            #expect(verdict == .other)
            #expect(fault.description.contains(words), "\(fault)")
        }
    }

    @Test("a refresh token that a 200 refuses twice asks for a person, and stays")
    func deadInA200() {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
        let refusal = DrivenLifeCycle.refused(OAuthError.Code(rawValue: "bad_refresh_token"), status: 200)
        cycle.answer(refusal)
        #expect(!cycle.eventNames.contains("needs_authentication"))
        cycle.pass(2)
        cycle.answer(refusal)
        #expect(cycle.eventNames == ["token_failed", "needs_authentication"])
        #expect(cycle.life.refreshToken == Secret("R1"))
    }

    @Test("a server that has sent JSON before does not itself answer 403 with a text")
    func otherMachine() async throws {
        let text = TokenEndpointAnswer(403, fields: [("Content-Type", "text/plain")], body: "Forbidden")
        let endpoint = try TokenEndpoint([text, .error("server_error", status: 500), text])
        let clock = ManualClock(chance: 0.9)
        let client = try makeClient(endpoint, clock: clock.clock)
        defer { client.shutdown() }
        #expect(try await client.refusal().fault == .status(403))
        clock.advance(by: .seconds(600))
        _ = try await client.refusal()
        clock.advance(by: .seconds(600))
        #expect(try await client.refusal().fault == .webPage(403))
    }

    @Test("a secret that is a part of the protocol's word does not hide the word")
    func secretInAWord() async throws {
        let endpoint = try TokenEndpoint([.error("invalid_client", status: 401)])
        var configuration = HeimdallrConfiguration(tokenEndpoint: endpoint.url)
        configuration.allowPlaintext = true
        let client = try Heimdallr(
            configuration: configuration,
            credentials: OAuthClientSecretCredentials(identifier: "app", secret: Secret("client")),
            httpClient: try SharedCurl.client(), clock: ManualClock(chance: 0.9).clock)
        defer { client.shutdown() }
        let fault = try #require(try await client.refusal().fault)
        guard case .refused(let error) = fault else { throw TestFailure("\(fault)") }
        #expect(error.code == .invalidClient)
        #expect(TokenLifeCycle.verdict(on: fault) == .other)
    }

    @Test("scopes with commas, in any order, are the scopes that were asked for")
    func commas() {
        let kept = GrantedScope.keep(["gist,repo"], askedFor: ["repo", "gist"], hiding: [])
        #expect(kept == ["gist", "repo"])
        #expect(GrantedScope.missing(from: kept, wanted: ["repo", "gist"]) == [])
        #expect(GrantedScope.missing(from: ["b", "a"], wanted: ["a,b"]) == [])
        #expect(GrantedScope.missing(from: ["b"], wanted: ["a,b", "c"]) == ["a,b", "c"])
        #expect(GrantedScope.keep(["a,b"], askedFor: ["a,b"], hiding: []) == ["a,b"])
    }

    @Test("scopes that nobody asked for don't add up from refresh to refresh")
    func foreignScopes() {
        var granted: [String] = []
        for round in 0..<5 {
            let new = (0..<64).map { "s\(round).\($0)" }
            granted = GrantedScope.keep(new + granted, askedFor: ["read"], granted: granted, hiding: [])
            #expect(granted == new)
        }
        #expect(GrantedScope.keep(["x,y"], askedFor: [], granted: ["x,y"], hiding: []) == ["x,y"], "as granted before")
    }

    @Test("a server that misses the scope in a refresh without one does not end the sign-in")
    func missingScope() async throws {
        let endpoint = try TokenEndpoint { _, _ in
            .error(
                "invalid_request",
                description: "AADSTS900144: The request body must contain the following parameter: 'scope'.")
        }
        let record = TokenRecord(
            revision: 1, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: Secret("R1"))
        for refreshesWithScope in [false, true] {
            let clock = ManualClock()
            let client = try makeClient(
                endpoint, grant: InteractiveGrant(), store: RecordingStore(["billing": record]), clock: clock.clock
            ) {
                $0.authorizationEndpoint = "http://127.0.0.1:9/authorize"
                $0.refreshesWithScope = refreshesWithScope
            }
            defer { client.shutdown() }
            client.start()
            let before = endpoint.requests.count
            try await eventually("three refreshes") {
                clock.advance(by: .seconds(1))
                return endpoint.requests.count >= before + 3 && client.status().lastError != nil
            }
            // The last advance may have begun a fourth attempt: until its answer the state is `fetching`.
            try await eventually("the state after an attempt") { client.status().state != .fetching }
            #expect(client.awaitsPerson == refreshesWithScope)
            #expect((client.status().state == .needsAuthentication) == refreshesWithScope)
        }
    }

    @Test("an answer without the configured member is told by the member's name")
    func missingMember() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(endpoint, clock: ManualClock(chance: 0.9).clock) {
            $0.tokenMember = "authed_user.access_token"
        }
        defer { client.shutdown() }
        #expect(try await client.refusal().fault == .answer(.noMember("authed_user.access_token")))
    }

    @Test("an answer without compression is asked for, and the operator's name replaces the product's")
    func userAgent() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(endpoint, httpClient: try SharedCurl.client()) {
            $0.headers = [HeimdallrHTTPField(name: "user-agent", value: "mine/1")]
        }
        defer { client.shutdown() }
        _ = try await client.accessToken()
        let sent = try #require(endpoint.requests.first)
        #expect(sent.fields.filter { $0.name.lowercased() == "user-agent" }.map(\.value) == ["mine/1"])
        #expect(sent.field("Accept-Encoding") == "identity")
    }
}
