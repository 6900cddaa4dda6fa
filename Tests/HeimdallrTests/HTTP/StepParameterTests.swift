import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `The scope of a refresh and the parameters of single steps` {
    private func granting(_ scope: String?, refreshToken: String = "R1") -> TokenEndpointAnswer {
        .token("T1", refreshToken: refreshToken, extra: scope.map { #""scope":"\#($0)""# })
    }

    @Test("a refresh names the granted scope, or else the requested one, and keeps names that servers grant silently")
    func granted() async throws {
        for (first, second, expected) in [
            (nil, nil, ["read offline_access", "read offline_access"]),
            ("read", "", ["read offline_access", "read offline_access"]),
            ("read write", nil, ["read write offline_access", "read write offline_access"]),
            ("", "list", ["read offline_access", "list offline_access"]),
            ("write,read", nil, ["write read offline_access", "write read offline_access"]),
        ] as [(String?, String?, [String])] {
            let clock = ManualClock()
            let endpoint = try TokenEndpoint([granting(first), granting(second, refreshToken: "R2"), granting(nil)])
            let client = try makeClient(endpoint, grant: InteractiveGrant(.password), clock: clock.clock) {
                $0.allowDeprecated = true
                $0.scope = ["read", "offline_access"]
            }
            defer { client.shutdown() }
            try await client.login(username: "ann", password: Secret("pw"))
            for _ in expected {
                clock.advance(by: .seconds(2))
                _ = try await client.refreshedToken()
            }
            #expect(endpoint.requests.dropFirst().map { $0["scope"] } == expected, "\(first ?? "-")")
            #expect(client.status().scopeNotGranted == [] || first == "" || first == "write,read")
        }
    }

    @Test("the granted scope outlives the access token, in the store's record too")
    func stored() async throws {
        let store = OAuthAccessTokenMemoryStore()
        let clock = ManualClock()
        let endpoint = try TokenEndpoint([granting("a b"), granting(nil)])
        func client() throws -> Heimdallr {
            try makeClient(endpoint, grant: InteractiveGrant(.password), store: store, clock: clock.clock) {
                $0.allowDeprecated = true
            }
        }
        let first = try client()
        try await first.login(username: "ann", password: Secret("pw"))
        first.shutdown()
        clock.advance(by: .seconds(4000))
        let second = try client()
        defer { second.shutdown() }
        _ = try await second.accessToken()
        #expect(endpoint.requests.last?["scope"] == "a b")
        #expect(second.status().scope == ["a", "b"])
    }

    @Test("a server that minds the scope in a refresh gets none: by the setting, or after its refusal")
    func minding() async throws {
        let clock = ManualClock()
        let endpoint = try TokenEndpoint { request, _ in
            request["scope"] == nil || request["grant_type"] == "password"
                ? .token("T1", refreshToken: "R1") : .error("invalid_request", status: 400)
        }
        let scopes = try TokenEndpoint { request, _ in
            request["scope"] == nil || request["grant_type"] == "password"
                ? .token("T1", refreshToken: "R1") : .error("invalid_scope", status: 400)
        }
        for (server, sendsScope) in [(endpoint, false), (scopes, true)] {
            let client = try makeClient(server, grant: InteractiveGrant(.password), clock: clock.clock) {
                $0.allowDeprecated = true
                $0.scope = ["read"]
                $0.refreshesWithScope = sendsScope
            }
            defer { client.shutdown() }
            try await client.login(username: "ann", password: Secret("pw"))
            clock.advance(by: .seconds(3))
            client.refreshNow()
            _ = try await server.requests(2)
            if sendsScope {
                try await eventually("the refusal") { client.status().lastError != nil }
                clock.advance(by: .seconds(3))
                try await eventually("the planned attempt") { client.status().lastError == nil }
            }
            try await eventually("the new token") { client.status().sinceLastSuccess == .zero }
            clock.advance(by: .seconds(3))
            _ = try await client.refreshedToken()
            let refreshes = server.requests.dropFirst().map { $0["scope"] }
            #expect(Array(refreshes.suffix(2)) == [nil, nil])
            #expect(refreshes.compactMap { $0 } == (sendsScope ? ["read"] : []))
            #expect(client.status().state == .ready)
        }
    }

    @Test("a step's parameters replace all others of their names, and an empty one is left out")
    func steps() async throws {
        let server = try LoginServer()
        server.giveToken()
        let clock = ManualClock()
        let client = try server.client(.browser, clock: clock.clock) {
            $0.scope = ["read"]
            $0.audience = "all"
            $0.resource = ["https://a.example/"]
            $0.parameters = [FormParameter("team", "acme")]
            $0.stepParameters = [
                .signIn: [FormParameter("scope", "read admin"), FormParameter("prompt", "consent")],
                .token: [FormParameter("audience", ""), FormParameter("team", "other")],
                .refresh: [
                    FormParameter("scope", "less"), FormParameter("resource", "urn:b"),
                    FormParameter("resource", "urn:c"),
                ],
            ]
        }
        defer { client.shutdown() }
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        let sent = ReadQuery(attempt.url)
        #expect(sent["scope"] == "read admin" && sent["prompt"] == "consent" && sent["team"] == "acme")
        #expect(sent["audience"] == "all" && sent["resource"] == "https://a.example/")
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        #expect(client.status().scope == ["read", "admin"], "what was asked for")
        clock.advance(by: .seconds(2))
        _ = try await client.refreshedToken()
        let forms = server.requests("/token").map { ReadQuery(query: $0.text) }
        try #require(forms.count == 2)
        #expect(forms[1]["scope"] == "less" && forms[1]["resource"] == "urn:b\nurn:c")
        #expect(forms[1]["audience"] == "all" && forms[1]["team"] == "acme" && forms[1]["prompt"] == nil)
        #expect(forms[0]["audience"] == nil && forms[0]["team"] == "other" && forms[0]["prompt"] == nil)
        #expect(forms[0]["code"] == "C1" && forms[0]["resource"] == "https://a.example/")
    }

    @Test("the step of a configured refresh token is a refresh, and that of an exchange an exchange")
    func grants() async throws {
        for (grant, scope) in [
            (RefreshTokenGrant(refreshToken: Secret("R0")), "r"),
            (TokenExchangeGrant(subject: .init(Secret("S0"))), "e"), (ClientCredentialsGrant(), "t"),
        ] as [(any OAuthAuthorizationGrant, String)] {
            let endpoint = try TokenEndpoint([.token("T1")])
            let client = try makeClient(endpoint, grant: grant) {
                $0.scope = ["read"]
                $0.stepParameters = [
                    .token: [FormParameter("scope", "t")], .refresh: [FormParameter("scope", "r")],
                    .exchange: [FormParameter("scope", "e")],
                ]
            }
            defer { client.shutdown() }
            #expect(try await client.accessToken().scope == [scope])
            #expect(endpoint.requests[0]["scope"] == scope)
        }
        let endpoint = try TokenEndpoint([.token("T1")])
        #expect(throws: HeimdallrConfigurationError.reservedParameter("client_id")) {
            try makeClient(endpoint) { $0.stepParameters = [.refresh: [FormParameter("client_id", "x")]] }
        }
    }
}
