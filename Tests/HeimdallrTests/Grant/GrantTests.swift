import Heimdallr
import Synchronization
import TestSupport
import Testing

@Suite struct `What a client shows for a token` {
    /// A secret that is another one each time.
    private final class Shared: SecretProvider {
        let count = Atomic<Int>(0)
        let prefix: String
        init(_ prefix: String) { self.prefix = prefix }
        func secret() -> Secret { Secret("\(prefix)\(count.add(1, ordering: .relaxed).newValue)") }
    }

    private let details: [JSONValue] = [
        .object(["type": .string("payment"), "actions": .array([.string("read & write")]), "limit": .number("12.50")])
    ]
    private let detailsText = #"[{"actions":["read & write"],"limit":12.50,"type":"payment"}]"#

    @Test("authorization_details goes as JSON with every token request, refreshes too")
    func authorizationDetails() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1"), .token("T2")])
        let clock = ManualClock()
        let client = try makeClient(endpoint, clock: clock.clock) { $0.authorizationDetails = details }
        _ = try await client.accessToken()
        clock.advance(by: .seconds(4000))
        _ = try await client.accessToken()
        #expect(endpoint.requests.map { $0["grant_type"] } == ["client_credentials", "refresh_token"])
        #expect(endpoint.requests.map { $0["authorization_details"] } == [detailsText, detailsText])
    }

    @Test("authorization_details goes with the browser, and with a pushed request")
    func authorizationDetailsOfLogins() async throws {
        let endpoint = try TokenEndpoint([.json(#"{"request_uri":"urn:x","expires_in":60}"#, status: 201)])
        for pushes in [false, true] {
            let client = try makeClient(endpoint, grant: InteractiveGrant(.browser)) {
                $0.authorizationDetails = details
                $0.authorizationEndpoint = "http://127.0.0.1:1/authorize"
                $0.pushedAuthorization = pushes ? .required : .off
                $0.pushedAuthorizationEndpoint = pushes ? endpoint.url : nil
            }
            let attempt = try await client.beginLogin(redirectURI: "http://127.0.0.1:1/callback")
            #expect(attempt.url.contains("authorization_details=%5B%7B%22actions") == !pushes)
        }
        #expect(endpoint.requests.map { $0["authorization_details"] } == [detailsText])
    }

    @Test(
        "authorization_details without a type, or too long, are refused",
        arguments: [
            JSONValue.string("payment"), .object(["actions": .array([])]), .object(["type": .string("")]),
            .object(["type": .string("a"), "x": .string(String(repeating: "x", count: 16 * 1024))]),
        ])
    func badAuthorizationDetails(_ detail: JSONValue) throws {
        let endpoint = try TokenEndpoint([])
        #expect(throws: HeimdallrConfigurationError.self) {
            try makeClient(endpoint) { $0.authorizationDetails = [detail] }
        }
    }

    @Test("jwt-bearer asks for its assertion anew for each request (RFC 7523), and may come without a client")
    func jwtBearer() async throws {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2")])
        let clock = ManualClock()
        let client = try makeClient(
            endpoint, credentials: OAuthNoClientCredentials(), grant: JWTBearerGrant(assertion: Shared(" a.b.c")),
            clock: clock.clock)
        _ = try await client.accessToken()
        clock.advance(by: .seconds(4000))
        _ = try await client.accessToken()
        #expect(endpoint.requests.map { $0["grant_type"] } == Array(repeating: JWTBearerGrant.name, count: 2))
        #expect(endpoint.requests.map { $0["assertion"] } == ["a.b.c1", "a.b.c2"])
        #expect(endpoint.requests.allSatisfy { $0["client_id"] == nil && $0.field("Authorization") == nil })
    }

    @Test(
        "a SAML assertion goes as base64url, whether a file holds XML or base64 of it (RFC 7522)",
        arguments: [
            "<a>?>?ü</a>", "\u{FEFF}\n <a>?>?ü</a>\n", "PGE-Pz4_w7w8L2E-", "PGE+Pz4/w7w8L2E+", "PGE+Pz4/\r\nw7w8L2E+\n",
        ])
    func saml2Bearer(_ content: String) async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(endpoint, grant: SAML2BearerGrant(assertion: Secret(content)))
        _ = try await client.accessToken()
        let request = try #require(endpoint.requests.first)
        #expect(request["grant_type"] == "urn:ietf:params:oauth:grant-type:saml2-bearer")
        let expected = content.contains("\u{FEFF}") ? "77u_CiA8YT4_Pj_DvDwvYT4K" : "PGE-Pz4_w7w8L2E-"
        #expect(request["assertion"] == expected)
    }

    @Test("a text that is no assertion is not sent", arguments: ["", "hello there", "aGVsbG8"])
    func noAssertion(_ content: String) async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(endpoint, grant: SAML2BearerGrant(assertion: Secret(content)))
        guard case .clientRefused(.secret, _) = try await client.refusal() else {
            Issue.record("it was sent")
            return
        }
        #expect(endpoint.requests.isEmpty)
    }

    @Test("an exchange shows subject and actor anew each time (RFC 8693), and needs no issued_token_type")
    func tokenExchange() async throws {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2", type: "bearer")])
        let clock = ManualClock()
        let grant = TokenExchangeGrant(
            subject: .init(Shared("S")), actor: .init(Shared("A"), type: .jwt), requestedTokenType: .accessToken)
        let client = try makeClient(endpoint, grant: grant, clock: clock.clock) {
            $0.audience = "orders"
            $0.resource = ["https://a.example.com", "https://b.example.com"]
        }
        _ = try await client.accessToken()
        clock.advance(by: .seconds(4000))
        #expect(try await client.accessToken().value.revealed == "T2")
        let urn = "urn:ietf:params:oauth:token-type:"
        for (index, request) in endpoint.requests.enumerated() {
            #expect(request["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange")
            #expect(request["subject_token"] == "S\(index + 1)")
            #expect(request["subject_token_type"] == urn + "access_token")
            #expect(request["actor_token"] == "A\(index + 1)")
            #expect(request["actor_token_type"] == urn + "jwt")
            #expect(request["requested_token_type"] == urn + "access_token")
            #expect(request["audience"] == "orders")
            #expect(request["resource"] == "https://a.example.com\nhttps://b.example.com")
        }
        #expect(endpoint.requests.count == 2)
    }

    @Test("a refresh token that an exchange brings, or that lies in the store, is not used and not kept")
    func exchangeAnew() async throws {
        let endpoint = try TokenEndpoint([
            .token("T1", refreshToken: "R1"), .token("T2", refreshToken: "R2"), .token("T3"),
        ])
        let (clock, store) = (ManualClock(), RecordingStore())
        let client = try makeClient(
            endpoint, grant: TokenExchangeGrant(subject: .init(Shared("S"))), store: store, clock: clock.clock)
        #expect(try await client.accessToken().refreshToken == nil)
        clock.advance(by: .seconds(4000))
        #expect(try await client.accessToken().value.revealed == "T2")
        client.shutdown()
        #expect(await store.saves.allSatisfy { $0.refreshToken == nil })
        var record = try #require(await store.records["billing"])
        (record.accessToken, record.refreshToken) = (nil, Secret("R0"))
        let other = try makeClient(
            endpoint, grant: TokenExchangeGrant(subject: .init(Shared("S"))), store: RecordingStore(["billing": record])
        )
        #expect(try await other.accessToken().value.revealed == "T3")
        #expect(endpoint.requests.map { $0["subject_token"] } == ["S1", "S2", "S1"])
    }

    @Test("a token of an exchange that is no access token (N_A) is refused, unless it is named")
    func notAnAccessToken() async throws {
        let answer = TokenEndpointAnswer.token("T1", type: "N_A")
        let endpoint = try TokenEndpoint([answer])
        let grant = TokenExchangeGrant(subject: .init(Secret("S")))
        let error = try await makeClient(endpoint, grant: grant).refusal(waiting: .seconds(10))
        guard case .clientRefused(.answer(.notAnAccessToken), _) = error else {
            Issue.record("\(error)")
            return
        }
        #expect("\(error)".contains("requested_token_type"))
        let named = try makeClient(endpoint, grant: grant) { $0.treatAsBearer = ["n_a"] }
        #expect(try await named.accessToken().value.revealed == "T1")
    }
}

extension JWTBearerGrant {
    fileprivate static var name: String { "urn:ietf:params:oauth:grant-type:jwt-bearer" }
}
