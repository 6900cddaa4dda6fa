import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Answers and consent at a server that an API named` {
    private static let issAdvertised =
        #""registration_endpoint":"%/register","code_challenge_methods_supported":["S256"],"#
        + #""authorization_response_iss_parameter_supported":true"#

    @Test(
        "an iss that was advertised and is absent, or is wrong, is refused before the code goes anywhere")
    func issuers() async throws {
        for (advertised, iss, isTaken) in [
            (true, "%", true), (true, nil, false), (true, "%/", false), (true, "https://evil.example", false),
            (false, nil, true), (false, "%", true), (false, "https://evil.example", false), (false, "%/", false),
        ] as [(Bool, String?, Bool)] {
            let api = try advertised ? EnrollingServer(more: Self.issAdvertised) : EnrollingServer()
            let more = iss.map { "&iss=" + $0.replacing("%", with: api.issuer) } ?? ""
            let client = try api.client()
            if isTaken {
                try await api.logIn(client, more: more)
            } else {
                await #expect(throws: LoginError.wrongIssuer, "\(advertised) \(iss ?? "none")") {
                    try await api.logIn(client, more: more)
                }
                #expect(api.server.requests("/token").isEmpty)
            }
        }
    }

    @Test("the words of an answer without the advertised iss, or with a wrong one, are not shown")
    func words() async throws {
        let api = try EnrollingServer(more: Self.issAdvertised)
        for iss in ["", "&iss=https://evil.example"] {
            let client = try api.client()
            let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
            let url =
                "\(LoginServer.callback)?error=access_denied&error_description=call+0900&error_uri=https://evil.example/"
                + "&state=\(attempt.state)\(iss)"
            await #expect(throws: LoginError.wrongIssuer) { try await client.finishLogin(attempt, redirectedTo: url) }
        }
    }

    @Test("insufficient_scope is told once, and the next sign-in asks for the union")
    func stepUp() async throws {
        let api = try EnrollingServer()
        api.publish(more: #""scopes_supported":["read"]"#)
        let client = try api.client()
        try await api.logIn(client)
        var events = client.events().makeAsyncIterator()
        let challenge = ResourceChallenge(url: api.api, scope: "write read", error: "insufficient_scope")
        for _ in 0..<100 { client.challenged(challenge, hadToken: true) }
        #expect(await events.next()?.kind == .moreConsentNeeded(scope: ["write", "read"]))
        #expect(client.status().enrolment?.missingScopes == ["write", "read"])
        #expect(client.currentToken() != nil)
        #expect(api.tokenForms.count == 1)
        #expect(try await api.logIn(client)["scope"] == "read write")
        #expect(client.status().enrolment?.missingScopes == [])
    }

    @Test("insufficient_user_authentication lets the next sign-in carry acr_values and max_age")
    func authentication() async throws {
        let api = try EnrollingServer()
        let client = try api.client()
        try await api.logIn(client)
        client.challenged(
            ResourceChallenge(
                url: api.api, error: "insufficient_user_authentication", acrValues: "mfa hw", maxAge: "60"),
            hadToken: true)
        let query = try await api.logIn(client)
        #expect(query["acr_values"] == "mfa hw")
        #expect(query["max_age"] == "60")
        #expect(try await api.logIn(client)["acr_values"] == nil)
    }

    @Test("the client is the configured one, else a document where the server reads them, else registered, else typed")
    func order() async throws {
        let document = "https://ops.example/c.json"
        let api = try EnrollingServer(
            more: #""registration_endpoint":"%/register","code_challenge_methods_supported":["S256"],"#
                + #""client_id_metadata_document_supported":true"#)
        #expect(try await api.logIn(try api.client(identifier: "mine"))["client_id"] == "mine")
        #expect(try await api.logIn(try api.client { $0.clientDocument = document })["client_id"] == document)
        #expect(api.registrations == 0)
        #expect(try await api.logIn(try api.client())["client_id"] == "registered-1")
        api.describe(#""code_challenge_methods_supported":["S256"]"#)
        let client = try api.client { $0.clientDocument = document }
        let offer = try await client.signInOffer(redirectURI: LoginServer.callback)
        #expect(offer.client == .wanted)
        try await client.useClient(
            identifier: "typed", secret: Secret("s3cret"), redirectURI: LoginServer.callback)
        let query = try await api.logIn(client)
        #expect(query["client_id"] == "typed")
        #expect(query["prompt"] == nil)
        let request = try #require(api.server.requests("/token").last)
        #expect(request.field("Authorization") == "Basic dHlwZWQ6czNjcmV0")
        #expect(client.status().enrolment?.client == "typed")
    }

    @Test(
        "a refresh token is asked for where the server lists offline_access, with the prompt that OpenID providers demand"
    )
    func offline() async throws {
        let api = try EnrollingServer(
            more: #""registration_endpoint":"%/register","code_challenge_methods_supported":["S256"],"#
                + #""scopes_supported":["offline_access","read"]"#)
        api.publish(more: #""scopes_supported":["read"]"#)
        let query = try await api.logIn(try api.client())
        #expect(query["scope"] == "read offline_access")
        #expect(query["prompt"] == "consent")
    }

    @Test("a forgotten client is registered anew when a person says so, once; a typed one can be replaced")
    func anew() async throws {
        let api = try EnrollingServer()
        let client = try api.client()
        try await api.logIn(client)
        #expect(try await client.signInOffer(redirectURI: LoginServer.callback).client == .known("registered-1"))
        try await client.forgetRegistration(redirectURI: LoginServer.callback)
        #expect(try await client.signInOffer(redirectURI: LoginServer.callback).client == .registered)
        api.server[EnrollingServer.registration] = .json(#"{"client_id":"registered-2"}"#, status: 201)
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        #expect(ReadQuery(attempt.url)["client_id"] == "registered-2")
        try await client.forgetRegistration(redirectURI: LoginServer.callback)
        do {
            _ = try await client.beginLogin(redirectURI: LoginServer.callback)
            Issue.record("registered a third time")
        } catch LoginError.discovery(.registeredLately) {}
        for name in ["typed-1", "typed-2"] {
            try await client.useClient(identifier: name, secret: nil, redirectURI: LoginServer.callback)
            try await client.forgetRegistration(redirectURI: LoginServer.callback)
            #expect(try await client.signInOffer(redirectURI: LoginServer.callback).client == .typed(name))
        }
        #expect(api.registrations == 2)
    }

    @Test("with dpop, tokens of a found server are bound to a key")
    func bound() async throws {
        let api = try EnrollingServer()
        api.server["/token"] = .json(#"{"access_token":"T1","token_type":"DPoP","expires_in":3600}"#)
        let client = try api.client(dpop: .ownKey)
        try await api.logIn(client)
        #expect(api.server.requests("/token").last?.field("DPoP") != nil)
        #expect(client.currentToken()?.binding != nil)
    }

    @Test("a secret of the registration is used where it was registered for, and hidden")
    func secret() async throws {
        let api = try EnrollingServer(
            more: #""registration_endpoint":"%/register","code_challenge_methods_supported":["S256"],"#
                + #""token_endpoint_auth_methods_supported":["client_secret_post"]"#)
        api.server[EnrollingServer.registration] = .json(
            #"{"client_id":"r","client_secret":"s3cret","token_endpoint_auth_method":"client_secret_post"}"#,
            status: 201)
        let client = try api.client()
        try await api.logIn(client)
        #expect(api.tokenForms.last?["client_secret"] == "s3cret")
        api.server["/token"] = .json(#"{"error":"x","error_description":"s3cret"}"#, status: 400)
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        do { try await client.finishLogin(attempt, redirectedTo: api.server.answer(attempt)) } catch {
            #expect(!"\(error)".contains("s3cret"))
        }
    }

    @Test("after one consent for many APIs the provider's id token becomes an assertion for the API's server")
    func assertion() async throws {
        let (idp, api) = (try LoginServer(), try EnrollingServer())
        api.publish(more: #""scopes_supported":["read"]"#)
        let provider = try idp.client()
        let grant = IdentityAssertionGrant { provider }
        let client = try api.client(identifier: "there", grant: grant)
        let early = try await client.refusal()
        guard case .clientRefused(.secret, _) = early else { throw TestFailure("\(early)") }
        idp.giveToken(more: #""refresh_token":"R1","id_token":"unchecked""#)
        try await idp.logIn(provider)
        provider.apply { life, moment in
            life.grant.replace(Secret("R1"), nil, SignIn(idToken: Secret("old-id-token"), name: "ada"))
            _ = moment
        }
        idp["/token"] = .json(
            #"{"access_token":"the-assertion","token_type":"N_A","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#
        )
        let next = try api.client(identifier: "there", grant: grant)
        #expect(try await next.accessToken().value == Secret("T1"))
        let exchange = ReadQuery(query: try #require(idp.requests("/token").last).text)
        #expect(exchange["subject_token"] == "old-id-token")
        #expect(exchange["requested_token_type"] == "urn:ietf:params:oauth:token-type:id-jag")
        #expect(exchange["audience"] == api.issuer)
        #expect(exchange["resource"] == api.api)
        #expect(exchange["scope"] == "read")
        let form = try #require(api.tokenForms.last)
        #expect(form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer")
        #expect(form["assertion"] == "the-assertion")
        #expect(form["resource"] == api.api)
        #expect(form["subject_token"] == nil)
    }

    /// Answers of the identity provider: to each exchange in order, then to a refresh.
    private func provider(
        _ exchanges: [(status: Int, body: String)], refresh: String, asked: Recorder<ReadQuery>
    ) throws -> Heimdallr {
        var configuration = HeimdallrConfiguration(tokenEndpoint: "https://idp.example/token")
        configuration.scope = ["openid"]
        let provider = try Heimdallr(
            name: "idp", configuration: configuration, credentials: OAuthClientSecretCredentials(identifier: "app"),
            grant: InteractiveGrant(),
            httpClient: ScriptedHTTPClient { request in
                let form = ReadQuery(query: request.content.revealed)
                let earlier = asked.all.filter { $0["subject_token"] != nil }.count
                asked.append(form)
                let (status, body) =
                    form["subject_token"] == nil ? (200, refresh) : exchanges.dropFirst(earlier).first ?? (418, "")
                return HeimdallrHTTPResponse(status: status, headers: [], body: Array(body.utf8))
            }, store: OAuthAccessTokenMemoryStore())
        provider.apply { life, _ in
            life.grant.replace(Secret("R1"), nil, SignIn(idToken: Secret("old-id-token"), name: "ada"))
        }
        return provider
    }

    @Test("a refused id token is renewed once, by a refresh; another failure, or no newer token, is the error")
    func renewal() async throws {
        let assertion =
            #"{"access_token":"the-assertion","token_type":"N_A","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#
        let refusal = #"{"error":"invalid_grant","error_description":"too old"}"#
        let bare = #""access_token":"A2","token_type":"Bearer","expires_in":300,"refresh_token":"R2""#
        let (renews, renewsNothing) = (#"{\#(bare),"id_token":"new-id-token"}"#, "{\(bare)}")
        for (exchanges, refresh, sent, isGood) in [
            ([(400, refusal), (200, assertion)], renews, ["old-id-token", "R1", "new-id-token"], true),
            ([(400, refusal), (400, refusal)], renews, ["old-id-token", "R1", "new-id-token"], false),
            ([(400, refusal)], renewsNothing, ["old-id-token", "R1"], false),
            ([(503, refusal)], renews, ["old-id-token"], false),
        ] as [([(Int, String)], String, [String], Bool)] {
            let (api, asked) = (try EnrollingServer(), Recorder<ReadQuery>())
            let provider = try provider(exchanges, refresh: refresh, asked: asked)
            let client = try api.client(identifier: "there", grant: IdentityAssertionGrant { provider })
            if isGood {
                #expect(try await client.accessToken().value == Secret("T1"))
                #expect(api.tokenForms.map { $0["assertion"] } == ["the-assertion"])
            } else {
                let error = try await client.refusal(waiting: .seconds(20))
                guard case .clientRefused(.secret(let fault), _) = error else { throw TestFailure("\(error)") }
                #expect("\(fault)".contains("the identity provider gave no assertion"))
                #expect(api.tokenForms.isEmpty)
            }
            #expect(asked.all.map { $0["subject_token"] ?? $0["refresh_token"] } == sent)
            client.shutdown()
        }
    }

    @Test("without a person client credentials are used at the named server, where it offers them")
    func unattended() async throws {
        let api = try EnrollingServer(more: #""grant_types_supported":["client_credentials"]"#)
        api.publish(more: #""scopes_supported":["read"]"#)
        api.server.giveToken(more: #""x":1"#)
        let client = try api.client(identifier: "machine", grant: ClientCredentialsGrant())
        #expect(try await client.accessToken().value == Secret("T1"))
        let form = try #require(api.tokenForms.last)
        #expect(form["grant_type"] == "client_credentials")
        #expect(form["resource"] == api.api)
        #expect(form["scope"] == "read")
        api.describe(#""grant_types_supported":["authorization_code"]"#)
        let refused = try api.client(identifier: "machine", grant: ClientCredentialsGrant())
        let error = try await refused.refusal()
        guard case .tokenEndpointUnavailable(.discovery(.noGrant("client_credentials")), _) = error else {
            throw TestFailure("\(error)")
        }
    }
}
