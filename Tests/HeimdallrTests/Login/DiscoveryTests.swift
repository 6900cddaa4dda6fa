import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Finding a server's endpoints` {
    private func machine(
        _ server: LoginServer, clock: HeimdallrClock = .system,
        _ change: (inout HeimdallrConfiguration) -> Void = { _ in }
    ) throws -> Heimdallr {
        var configuration = HeimdallrConfiguration(issuer: server.issuer)
        configuration.allowPlaintext = true
        change(&configuration)
        return try Heimdallr(
            name: "machine", configuration: configuration,
            credentials: OAuthClientSecretCredentials(identifier: "m", secret: Secret("s")),
            httpClient: LoopbackHTTPClient(), clock: clock)
    }

    @Test("RFC 8414 puts the well-known part in front of the issuer's path; OpenID Connect behind it")
    func addresses() {
        #expect(
            ServerMetadata.addresses(of: "https://idp.example.com/tenant/a") == [
                "https://idp.example.com/.well-known/oauth-authorization-server/tenant/a",
                "https://idp.example.com/.well-known/openid-configuration/tenant/a",
                "https://idp.example.com/tenant/a/.well-known/openid-configuration",
            ])
        #expect(
            ServerMetadata.addresses(of: "https://idp.example.com:8443/") == [
                "https://idp.example.com:8443/.well-known/oauth-authorization-server",
                "https://idp.example.com:8443/.well-known/openid-configuration",
            ])
    }

    @Test("the first address that has a document is used, whatever grants it lists; then the token endpoint is asked")
    func order() async throws {
        let server = try LoginServer(path: "/tenant")
        server.giveToken()
        server["/tenant/.well-known/openid-configuration"] = .json(
            server.metadata(more: #""grant_types_supported":[],"response_types_supported":"nonsense""#))
        let first = try machine(server)
        #expect(try await first.accessToken().value == Secret("T1"))
        #expect(server.targets == ["/.well-known/oauth-authorization-server/tenant", "/token"])
        server[LoginServer.wellKnown + "/tenant"] = LoginServer.Reply(status: 404)
        #expect(try await machine(server).accessToken().value == Secret("T1"))
        #expect(
            server.targets.dropFirst(2) == [
                "/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant",
                "/tenant/.well-known/openid-configuration", "/token",
            ])
        #expect(server.requests("/token")[0].field("Authorization") != nil)
        for document in server.requests(LoginServer.wellKnown + "/tenant") {
            #expect(document.field("Authorization") == nil, "no credential is sent to ask for metadata")
        }
    }

    @Test("explicit endpoints always win, and then nobody is asked")
    func explicit() async throws {
        let server = try LoginServer()
        server.giveToken()
        let client = try machine(server) { $0.tokenEndpoint = server.url + "/token" }
        #expect(try await client.accessToken().value == Secret("T1"))
        #expect(server.targets == ["/token"])
    }

    @Test(
        "metadata of another issuer, or of none, is not used: nothing is sent to its token endpoint",
        arguments: ["%//", "%/x", "https://evil.example", "", "HTTP", "%#", "%?a"])
    func otherIssuer(_ named: String) async throws {
        let server = try LoginServer()
        server.giveToken()
        let named = named == "HTTP" ? server.issuer.uppercased() : named.replacing("%", with: server.issuer)
        server[LoginServer.wellKnown] = .json(server.metadata(issuer: named))
        let client = try machine(server, clock: ManualClock().clock)
        let error = try await client.refusal()
        guard case .tokenEndpointUnavailable(.discovery(.otherIssuer), _) = error else {
            throw TestFailure("\(error)")
        }
        #expect(client.status().lastError == error)
        #expect(server.requests("/token").isEmpty)
    }

    @Test("documents that are huge, cut, no JSON, or elsewhere: a fault that passes, never a crash or a redirect")
    func hostile() async throws {
        let server = try LoginServer()
        let good = server.metadata()
        for (reply, fault) in [
            (LoginServer.Reply(flood: 300_000), DiscoveryFault.network(.bodyTooLarge)),
            (.json(String(good.dropLast(5))), .malformed), (.json("<!doctype html>"), .malformed),
            (.json("[]"), .malformed), (.json("{}"), .malformed), (.json(""), .malformed),
            (.json(#"{"issuer":"a","issuer":"\#(server.issuer)"}"#), .malformed),
            (LoginServer.Reply(status: 302, fields: [("Location", "/elsewhere")]), .status(302)),
            (LoginServer.Reply(status: 403, body: "<html>Blocked</html>"), .webPage(403)),
            (LoginServer.Reply(status: 404, body: "<html>Nothing</html>"), .status(404)),
            (LoginServer.Reply(status: 403, body: #"{"message":"Missing Authentication Token"}"#), .status(403)),
            (LoginServer.Reply(status: 500), .status(500)), (LoginServer.Reply(closes: true), .network(.cut)),
        ] {
            server[LoginServer.wellKnown] = reply
            var configuration = HeimdallrConfiguration(issuer: server.issuer)
            configuration.allowPlaintext = true
            configuration.timeout = .seconds(60)
            let directory = EndpointDirectory(
                configuration: configuration, httpClient: try SharedCurl.client(), clock: .system)
            await #expect(throws: fault) { try await directory.url(.token) }
        }
        #expect(!server.targets.contains("/elsewhere"))
    }

    @Test("the metadata's endpoints obey the rule of https, each when it is used")
    func plaintext() throws {
        let text = """
            {"issuer":"https://a.example","token_endpoint":"http://a.example/t","jwks_uri":"javascript:x",
            "authorization_endpoint":"https://a.example/a","revocation_endpoint":["https://a.example/r"]}
            """
        let metadata = try ServerMetadata(Array(text.utf8), issuer: "https://a.example")
        #expect(throws: DiscoveryFault.unusable("token_endpoint")) {
            try metadata.url(.token, allowPlaintext: false)
        }
        #expect(try metadata.url(.token, allowPlaintext: true) == "http://a.example/t")
        #expect(throws: DiscoveryFault.unusable("jwks_uri")) { try metadata.url(.keys, allowPlaintext: true) }
        #expect(throws: DiscoveryFault.missing("revocation_endpoint")) {
            try metadata.url(.revocation, allowPlaintext: false)
        }
        #expect(try metadata.url(.authorization, allowPlaintext: false) == "https://a.example/a")
    }

    @Test("a client with a certificate goes where the server asks for one, with its own client_id only")
    func aliases() throws {
        let text = """
            {"issuer":"https://a.example","token_endpoint":"https://a.example/t","authorization_endpoint":"https://a.example/a",
            "revocation_endpoint":"https://a.example/r","mtls_endpoint_aliases":{"token_endpoint":"https://mtls.a.example/t",
            "pushed_authorization_request_endpoint":"https://mtls.a.example/p","authorization_endpoint":"https://x.example"}}
            """
        let metadata = try ServerMetadata(Array(text.utf8), issuer: "https://a.example")
        func url(_ endpoint: Endpoint, _ throughAlias: Bool) throws -> String {
            try metadata.url(endpoint, allowPlaintext: false, throughAlias: throughAlias)
        }
        #expect(try url(.token, false) == "https://a.example/t")
        #expect(try url(.token, true) == "https://mtls.a.example/t")
        #expect(try url(.revocation, true) == "https://a.example/r")
        #expect(try url(.authorization, true) == "https://a.example/a")
        #expect(try url(.pushedAuthorization, true) == "https://mtls.a.example/p")
        #expect(throws: DiscoveryFault.self) { try url(.pushedAuthorization, false) }
    }

    @Test("what was found is kept for a day, and asked for again when an endpoint is gone, once a minute at most")
    func cache() async throws {
        let server = try LoginServer()
        server.giveToken()
        let clock = ManualClock()
        let client = try machine(server, clock: clock.clock)
        let documents = { server.requests(LoginServer.wellKnown).count }
        func next() async throws -> String? {
            client.invalidateAccessToken()
            clock.advance(by: .seconds(61))
            return try? await client.accessToken(waiting: .milliseconds(300)).value.revealed
        }
        #expect(try await client.accessToken().value == Secret("T1"))
        #expect(try await next() == "T1")
        #expect(documents() == 1)
        // The server moves.
        server["/token"] = LoginServer.Reply(status: 404)
        #expect(try await next() == nil)
        #expect(documents() == 1)
        server["/moved"] = .json(#"{"access_token":"T2","token_type":"Bearer","expires_in":3600}"#)
        server[LoginServer.wellKnown] = .json(
            #"{"issuer":"\#(server.issuer)","token_endpoint":"\#(server.url)/moved"}"#)
        clock.advance(by: .seconds(400))
        #expect(try await client.accessToken(waiting: .milliseconds(300)).value == Secret("T2"))
        #expect(documents() == 2)
        // Out of order again, metadata too: what was known serves on.
        server[LoginServer.wellKnown] = LoginServer.Reply(status: 500)
        server["/moved"] = LoginServer.Reply(closes: true)
        #expect(try await next() == nil)
        server["/moved"] = .json(#"{"access_token":"T3","token_type":"Bearer","expires_in":3600}"#)
        #expect(try await next() == "T3")
        let asked = documents()
        for _ in 0..<5 {
            client.invalidateAccessToken()
            clock.advance(by: .seconds(2))
            _ = try await client.accessToken(waiting: .milliseconds(300))
        }
        #expect(documents() == asked, "not in a tight loop")
    }

    @Test("a server that is not there yet stops nothing: the client starts, says so, and gets its token later")
    func later() async throws {
        let server = try LoginServer()
        server.giveToken()
        server[LoginServer.wellKnown] = LoginServer.Reply(status: 503)
        let clock = ManualClock(chance: 0.5)
        let client = try machine(server, clock: clock.clock)
        client.start()
        let status = try await eventually("a first outcome") { client.status().hasSettled ? client.status() : nil }
        guard case .tokenEndpointUnavailable(.discovery(.status(503)), _) = status.lastError else {
            throw TestFailure("\(status)")
        }
        #expect(status.state == .backingOff)
        server[LoginServer.wellKnown] = .json(server.metadata())
        clock.advance(by: .seconds(31))
        _ = try await eventually("a token") { client.hasAccessToken ? true : nil }
    }

    @Test("many callers that ask at once ask the server once")
    func once() async throws {
        let server = try LoginServer()
        var reply = LoginServer.Reply.json(server.metadata())
        reply.delay = .milliseconds(300)
        server[LoginServer.wellKnown] = reply
        let client = try server.client()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<50 {
                group.addTask { _ = try await client.beginLogin(redirectURI: LoginServer.callback) }
            }
            try await group.waitForAll()
        }
        #expect(server.requests(LoginServer.wellKnown).count == 1)
    }

    @Test("revocation finds its endpoint too; without one that is said, and nothing is forgotten")
    func revocation() async throws {
        let server = try LoginServer()
        server.giveToken()
        server["/revoke"] = LoginServer.Reply(status: 200)
        let client = try server.client()
        try await server.logIn(client)
        let report = await client.logOut()
        #expect(report.result == .asked(refreshToken: .revoked, accessToken: .revoked))
        #expect(server.requests("/revoke").map { ReadQuery(query: $0.text)["token"] } == ["R1", "T1"])

        server[LoginServer.wellKnown] = .json(server.metadata(leavingOut: ["revocation_endpoint"]))
        let other = try server.client()
        try await server.logIn(other)
        #expect(await other.logOut().result == .noEndpoint)
        #expect(other.hasAccessToken)
    }

    @Test("a configuration without an issuer and without a token endpoint can't work; an issuer has no query")
    func configuration() {
        for (configuration, error) in [
            (HeimdallrConfiguration(), HeimdallrConfigurationError.noEndpoint("token endpoint")),
            (HeimdallrConfiguration(issuer: "https://a.example?x"), .malformedEndpoint("issuer")),
            (HeimdallrConfiguration(issuer: "http://a.example"), .plaintextEndpoint("issuer")),
        ] {
            #expect(throws: error) {
                try Heimdallr(
                    configuration: configuration, credentials: OAuthClientSecretCredentials(identifier: "a"),
                    httpClient: LoopbackHTTPClient())
            }
        }
    }
}
