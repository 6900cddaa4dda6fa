import Heimdallr
import Synchronization
import Testing
import TestSupport

/// The behaviours of the libraries before us, by their numbers; against a real endpoint on loopback.
@Suite struct `Token requests` {
    @Test("[1] a 200 with access_token, token_type, expires_in and refresh_token is stored")
    func wholeAnswerIsStored() async throws {
        let endpoint = try TokenEndpoint([.token("T1", expiresIn: "3600", refreshToken: "R1")])
        let store = RecordingStore()
        let client = try makeClient(endpoint, store: store)
        let token = try await client.accessToken()
        #expect(token.value.revealed == "T1")
        #expect(token.type == "Bearer")
        #expect(token.refreshToken == Secret("R1"))
        let record = try #require(await store.records["billing"])
        #expect(record.accessToken == Secret("T1"))
        #expect(record.refreshToken == Secret("R1"))
        #expect((3590...3600).contains(record.expiresAt - record.issuedAt))
        #expect(client.hasAccessToken)
    }

    @Test("[2] default_token_type stands in for a missing token_type, when it is set")
    func defaultTokenType() async throws {
        let endpoint = try TokenEndpoint([.token("T1", type: nil)])
        let client = try makeClient(endpoint) { $0.defaultTokenType = "bearer" }
        #expect(try await client.accessToken().value == Secret("T1"))
    }

    @Test("[4] [26] an interactive grant without a refresh token needs a login at expiry, and asks nothing")
    func expiredInteractive() async throws {
        let endpoint = try TokenEndpoint([.token("never")])
        let store = RecordingStore([
            "billing": TokenRecord(
                revision: 1, accessToken: Secret("old"), issuedAt: 1_699_990_000, expiresAt: 1_699_999_999,
                refreshToken: nil)
        ])
        let client = try makeClient(endpoint, grant: InteractiveGrant(), store: store, clock: ManualClock().clock)
        #expect(try await client.refusal() == .needsAuthentication)
        #expect(endpoint.requests.isEmpty)
    }

    @Test("[5] expired with a refresh token: one refresh, and the request is authenticated")
    func expiredWithRefreshToken() async throws {
        let endpoint = try TokenEndpoint([.token("T2", refreshToken: "R2")])
        let store = RecordingStore([
            "billing": TokenRecord(
                revision: 1, accessToken: Secret("old"), issuedAt: 1_699_990_000, expiresAt: 1_699_999_999,
                refreshToken: Secret("R1"))
        ])
        let client = try makeClient(endpoint, grant: InteractiveGrant(), store: store, clock: ManualClock().clock)
        var request = HeimdallrHTTPRequest(url: "https://api.example.com/v1")
        try await client.authenticate(&request)
        #expect(request.headers == [HeimdallrHTTPField(name: "Authorization", value: "Bearer T2")])
        #expect(endpoint.requests.map { $0["grant_type"] } == ["refresh_token"])
        #expect(endpoint.requests[0]["refresh_token"] == "R1")
    }

    @Test("[6] an interactive grant without a token needs a login, and asks nothing")
    func nothingInteractive() async throws {
        let endpoint = try TokenEndpoint([.token("never")])
        let client = try makeClient(endpoint, grant: InteractiveGrant())
        #expect(try await client.refusal(waiting: .seconds(10)) == .needsAuthentication)
        #expect(client.status().state == .needsAuthentication)
        #expect(endpoint.requests.isEmpty)
    }

    @Test("[8] an unknown error code keeps code, description and uri")
    func unknownCode() async throws {
        let endpoint = try TokenEndpoint([
            .error("tea_break", description: "back at four", uri: "https://idp.example.com/tea")
        ])
        let error = try await makeClient(endpoint).refusal(waiting: .seconds(10))
        #expect(
            error.fault
                == .refused(
                    OAuthError(
                        status: 400, code: OAuthError.Code(rawValue: "tea_break"), detail: "back at four",
                        uri: "https://idp.example.com/tea")))
    }

    @Test("[9] any 2xx with a good body is a success", arguments: [200, 201, 202, 203, 206])
    func anySuccess(status: Int) async throws {
        let endpoint = try TokenEndpoint([.json(#"{"access_token":"T1","token_type":"Bearer"}"#, status: status)])
        #expect(try await makeClient(endpoint).accessToken().value == Secret("T1"))
    }

    @Test(
        "[9] an empty or odd body never crashes",
        arguments: ["", " ", "null", "0", "\"\"", "{", "\u{0}", "[[[[", "true"])
    func oddBodies(body: String) async throws {
        for status in [200, 204, 400, 500] {
            let endpoint = try TokenEndpoint([.json(status == 204 ? "" : body, status: status == 204 ? 201 : status)])
            let client = try makeClient(endpoint, clock: ManualClock(chance: 0.9).clock)
            #expect(try await client.refusal().fault != nil)
        }
    }

    @Test("[13] the scheme is Bearer, however the server spells it", arguments: ["bearer", "Bearer", "BEARER"])
    func bearerSpellings(type: String) async throws {
        let endpoint = try TokenEndpoint([.token("x", type: type)])
        var request = HeimdallrHTTPRequest(url: "https://api.example.com/")
        try await makeClient(endpoint).authenticate(&request)
        #expect(request.headers.map(\.value) == ["Bearer x"])
    }

    @Test("[13] an unknown token_type is taken where treat_as_bearer names it")
    func unknownType() async throws {
        let odd = try TokenEndpoint([.token("x", type: "access_token")])
        let client = try makeClient(odd) { $0.treatAsBearer = ["access_token"] }
        #expect(try await client.accessToken().type == "Bearer")
    }

    @Test("[17] [33] a refresh answer without refresh_token keeps the old one")
    func refreshKeepsRefreshToken() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1"), .token("T2"), .token("T3")])
        let clock = ManualClock()
        let store = RecordingStore()
        let client = try makeClient(endpoint, store: store, clock: clock.clock)
        _ = try await client.accessToken()
        for generation in ["T2", "T3"] {
            clock.advance(by: .seconds(4000))
            let token = try await client.accessToken()
            #expect(token.value.revealed == generation)
            #expect(token.refreshToken == Secret("R1"))
        }
        #expect(endpoint.requests.map { $0["refresh_token"] } == [nil, "R1", "R1"])
        #expect(await store.records["billing"]?.refreshToken == Secret("R1"))
    }

    @Test("[18] [59] an invalidated token is expired and keeps its refresh token; a cleared one leaves nothing")
    func invalidateAndClear() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1"), .token("T2"), .token("T3")])
        let clock = ManualClock()
        let store = RecordingStore()
        let client = try makeClient(endpoint, store: store, clock: clock.clock)
        _ = try await client.accessToken()
        client.invalidateAccessToken()
        #expect(client.currentToken() == nil)
        #expect(client.status().hasRefreshToken)
        clock.advance(by: .seconds(1))
        #expect(try await client.accessToken().value == Secret("T2"))
        #expect(endpoint.requests[1]["refresh_token"] == "R1")
        try await client.clearAccessToken()
        #expect(!client.hasAccessToken)
        #expect(!client.status().hasRefreshToken)
        #expect(await store.records["billing"] == nil)
        clock.advance(by: .seconds(1))
        _ = try await client.accessToken()
        #expect(
            endpoint.requests.map { $0["grant_type"] } == ["client_credentials", "refresh_token", "client_credentials"])
    }

    @Test("[20] [27] 100 callers at expiry make one token request")
    func singleFlightAtExpiry() async throws {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2", delay: .milliseconds(300)), .token("T3")])
        let clock = ManualClock()
        let client = try makeClient(endpoint, clock: clock.clock)
        _ = try await client.accessToken()
        clock.advance(by: .seconds(3600))
        #expect(client.currentToken() == nil)
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await client.accessToken().value.revealed } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(values == Array(repeating: "T2", count: 100))
        #expect(endpoint.requests.count == 2)
    }

    @Test("[22] tokens with the same content are equal, whichever issue they are")
    func valueEquality() {
        let now = ContinuousClock.now
        func token(_ value: String = "T1", scope: [String] = ["a"]) -> AccessToken {
            AccessToken(
                value: Secret(value), issuedAt: now, expiresAt: now + .seconds(60), refreshToken: Secret("R"),
                scope: scope, extra: ["username": .string("guest")])
        }
        #expect(token() == token())
        #expect(token() != token("T2"))
        #expect(token() != token(scope: []))
        #expect(token().generation != token().generation)
    }

    @Test("[24] expires_in 3 at clock t expires at t + 3 s")
    func expiryInstant() async throws {
        let endpoint = try TokenEndpoint([.token("T1", expiresIn: "3")])
        let clock = ManualClock()
        let client = try makeClient(endpoint, clock: clock.clock)
        let asked = clock.now
        let token = try await client.accessToken()
        #expect(token.expiresAt == asked + .seconds(3))
        clock.advance(by: .milliseconds(2999))
        #expect(client.currentToken() == token)
        clock.advance(by: .milliseconds(1))
        #expect(client.currentToken() == nil)
    }

    @Test(
        "[30] expires_in absent or null means default_expires_in; numbers and numeric strings count",
        arguments: [
            (nil, 300.0), ("null", 300), (#""soon""#, 300), (#""0x10""#, 300), ("true", 300), ("{}", 300),
            ("60", 60), (#""60""#, 60), ("60.5", 60.5), ("6e1", 60), (#"" 60 ""#, 60),
            ("1000000000000000000", 366 * 86400), ("1e300", 366 * 86400),
        ] as [(String?, Double)])
    func expiresIn(text: String?, seconds: Double) async throws {
        let endpoint = try TokenEndpoint([.token("T1", expiresIn: text)])
        let token = try await makeClient(endpoint).accessToken()
        #expect(token.issuedAt.duration(to: token.expiresAt) == .seconds(seconds))
    }

    @Test("[56] a refresh answer without expires_in lives for default_expires_in, not for the old answer's time")
    func refreshWithoutExpiresIn() async throws {
        let endpoint = try TokenEndpoint([
            .token("T1", refreshToken: "R1"), .token("T2", expiresIn: nil), .token("T3", expiresIn: "null"),
        ])
        let clock = ManualClock()
        let client = try makeClient(endpoint, clock: clock.clock) { $0.defaultExpiresIn = .seconds(120) }
        _ = try await client.accessToken()
        for value in ["T2", "T3"] {
            clock.advance(by: .seconds(4000))
            let token = try await client.accessToken()
            #expect(token.value.revealed == value)
            #expect(clock.now.duration(to: token.expiresAt) == .seconds(120))
        }
    }

    @Test("[49] two clients of one server share a store without seeing each other's tokens")
    func keyedByName() async throws {
        let endpoint = try TokenEndpoint { request, _ in .token("T-\(request["client_id"] ?? "")") }
        let store = OAuthAccessTokenMemoryStore()
        for name in ["a", "b", "a"] {
            let client = try makeClient(
                endpoint, name: name, credentials: OAuthClientSecretCredentials(identifier: name), store: store)
            #expect(try await client.accessToken().value.revealed == "T-\(name)")
        }
        #expect(endpoint.requests.map { $0["client_id"] } == ["a", "b"])
    }

    @Test("[31] scope is a string with spaces or an array; absent, it is what was asked for")
    func scopes() async throws {
        for (extra, expected) in [
            (#""scope":"a b""#, ["a", "b"]), (#""scope":["a","b"]"#, ["a", "b"]), (nil, ["asked"]),
            (#""scope":"""#, []), (#""scope":7"#, ["asked"]),
        ] as [(String?, [String])] {
            let endpoint = try TokenEndpoint([.token("T1", extra: extra)])
            let token = try await makeClient(endpoint) { $0.scope = ["asked"] }.accessToken()
            #expect(token.scope == expected)
            #expect(endpoint.requests[0]["scope"] == "asked")
        }
    }

    @Test(
        "an access token that could end a header line is refused",
        arguments: [#"a\r\nX-Evil: 1"#, #"a b"#, #"a\u0000"#, "tökén", #"a\u007f"#, #"a\tb"#])
    func injection(value: String) async throws {
        let endpoint = try TokenEndpoint([.token(value)])
        let error = try await makeClient(endpoint).refusal(waiting: .seconds(10))
        #expect(error.fault == .answer(.badAccessToken))
    }

    @Test("a redirect is an error and is not followed", arguments: [301, 302, 303, 307, 308])
    func redirects(status: Int) async throws {
        let elsewhere = try TokenEndpoint([.token("stolen")])
        let endpoint = try TokenEndpoint([.redirect(status, to: elsewhere.url)])
        #expect(try await makeClient(endpoint).refusal(waiting: .seconds(10)).fault == .redirect(status))
        #expect(elsewhere.requests.isEmpty)
    }

    @Test("words of a server are shown printable, short, and without our secrets")
    func serverTextIsHarmless() async throws {
        let secret = "s3 cr+t%41&="
        let endpoint = try TokenEndpoint { request, _ in
            let long = String(repeating: "x", count: 5000)
            return .error(
                "invalid_client",
                description:
                    #"\u001b[31m \#(secret) \#(request.body) \#(request.field("Authorization") ?? "") \#(long)"#)
        }
        for method in [OAuthClientSecretCredentials.Method.basic(.form), .basic(.percent), .basic(.raw), .post] {
            let client = try makeClient(
                endpoint,
                credentials: OAuthClientSecretCredentials(
                    identifier: "app", secret: Secret(secret), method: method))
            let text = try await client.refusal(waiting: .seconds(10)).description
            #expect(text.contains("<redacted>"))
            for spelling in [secret, "s3+cr%2Bt%2541%26%3D", "s3%20cr%2Bt%2541%26%3D", "\u{1b}"] {
                #expect(!text.contains(spelling))
            }
            if let sent = endpoint.requests.last?.field("Authorization")?.dropFirst("Basic ".count) {
                #expect(!text.contains(sent))
            }
            #expect(text.count < 400)
        }
    }
}

extension HeimdallrError {
    /// The token endpoint's fault, if it caused the failure.
    var fault: TokenEndpointFault? {
        switch self {
        case .tokenEndpointUnavailable(let fault, _), .clientRefused(let fault, _): fault
        default: nil
        }
    }
}
