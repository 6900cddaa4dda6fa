import Foundation
import TestSupport
import Testing

@testable import Heimdallr

@Suite(.timeLimit(.minutes(2))) struct `Every request to a server` {
    private static let clock = ManualClock()

    /// Requests that say who asks, as name and version of the product.
    private func named(_ requests: [RecordedRequest]) -> Bool {
        requests.allSatisfy { $0.field("User-Agent")?.hasPrefix("heimdallr-proxy/") == true }
    }

    private func expectAll(
        _ paths: [String], of server: LoginServer, have field: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for path in paths {
            let requests = server.requests(path)
            #expect(!requests.isEmpty, "no request to \(path)", sourceLocation: sourceLocation)
            #expect(named(requests), "\(path)", sourceLocation: sourceLocation)
            #expect(requests.allSatisfy { $0.field("X-Mine") == field }, "\(path)", sourceLocation: sourceLocation)
        }
    }

    @Test("metadata, PAR, token, keys, userinfo and revocation get the product's name and the operator's fields")
    func browser() async throws {
        let server = try LoginServer()
        server[LoginServer.wellKnown] = .json(
            server.metadata(
                more: #""userinfo_endpoint":"\#(server.url)/userinfo","#
                    + #""pushed_authorization_request_endpoint":"\#(server.url)/par""#))
        server["/par"] = .json(#"{"request_uri":"urn:x:1","expires_in":90}"#, status: 201)
        server["/userinfo"] = .json(#"{"sub":"1","name":"Ada"}"#)
        server["/revoke"] = .json("{}")
        var configuration = HeimdallrConfiguration(issuer: server.issuer)
        configuration.allowPlaintext = true
        configuration.scope = ["openid"]
        configuration.headers = [HeimdallrHTTPField(name: "X-Mine", value: "1")]
        let client = try Heimdallr(
            configuration: configuration, credentials: OAuthClientSecretCredentials(identifier: "app"),
            grant: InteractiveGrant(.browser), httpClient: try SharedCurl.client(), clock: Self.clock.clock)
        defer { client.shutdown() }
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        let claims: [String: Any] = [
            "iss": server.issuer, "aud": "app", "sub": "1", "exp": 1_700_000_300, "iat": 1_700_000_000,
            "nonce": attempt.expectation.nonce ?? "",
        ]
        let signed = try await SignedIDToken(claims: claims)
        server["/keys"] = .json(signed.keys)
        server.giveToken(more: #""refresh_token":"R1","id_token":"\#(signed.token)""#)
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        #expect(client.status().signedInAs == "Ada")
        server.giveToken("T2")
        Self.clock.advance(by: .seconds(5))
        #expect(try await client.refreshedToken(waiting: .seconds(20)).value == Secret("T2"))
        #expect(await client.logOut().isComplete)
        #expect(server.requests("/token").count == 2 && server.requests("/revoke").count == 2)
        expectAll(
            [LoginServer.wellKnown, "/par", "/token", "/keys", "/userinfo", "/revoke"], of: server, have: "1")
    }

    @Test("device endpoints and exchanges get the product's name and the operator's fields")
    func others() async throws {
        let server = try LoginServer()
        server["/device"] = .json(
            #"{"device_code":"D","user_code":"U","verification_uri":"https://idp.example/d","expires_in":600}"#)
        server.giveToken()
        let subject = TokenExchangeGrant.Token(Secret("S"), type: .accessToken)
        let grants: [any OAuthAuthorizationGrant] = [
            InteractiveGrant(.device), ClientCredentialsGrant(), TokenExchangeGrant(subject: subject),
        ]
        for grant in grants {
            var configuration = HeimdallrConfiguration(issuer: server.issuer)
            configuration.allowPlaintext = true
            configuration.headers = [HeimdallrHTTPField(name: "X-Mine", value: "1")]
            let client = try Heimdallr(
                configuration: configuration,
                credentials: OAuthClientSecretCredentials(identifier: "app", secret: Secret("s3cret")), grant: grant,
                httpClient: try SharedCurl.client())
            defer { client.shutdown() }
            if grant.loginMethod == .device {
                _ = try await client.beginDeviceLogin()
            } else {
                _ = try await client.accessToken(waiting: .seconds(20))
            }
        }
        expectAll([LoginServer.wellKnown, "/device", "/token"], of: server, have: "1")
    }

    @Test("a server named by an API gets the operator's fields, also at registration; the API gets the name alone")
    func enrolled() async throws {
        let api = try EnrollingServer()
        var configuration = HeimdallrConfiguration()
        configuration.enrolment = EnrolmentSettings(resource: api.api)
        configuration.enrolment?.issuer = api.issuer
        configuration.allowPlaintext = true
        configuration.headers = [HeimdallrHTTPField(name: "X-Mine", value: "1")]
        let client = try Heimdallr(
            name: "mcp", configuration: configuration, credentials: OAuthNoClientCredentials(),
            grant: InteractiveGrant(), httpClient: try SharedCurl.client())
        defer { client.shutdown() }
        try await api.logIn(client)
        expectAll(
            [LoginServer.wellKnown + "/as", EnrollingServer.registration, "/token"], of: api.server, have: "1")
        let documents = api.server.requests(EnrollingServer.resourcePath)
        #expect(!documents.isEmpty && named(documents))
        #expect(documents.allSatisfy { $0.field("X-Mine") == nil })
    }

    @Test("the operator's fields go only to the configured issuer, when the sign-in was at another one")
    func moved() {
        var configuration = HeimdallrConfiguration()
        configuration.headers = [HeimdallrHTTPField(name: "X-Mine", value: "1")]
        #expect(configuration.headers(for: "https://any.example").count == 1)
        configuration.enrolment = EnrolmentSettings(resource: "https://api.example")
        #expect(configuration.headers(for: "https://named.example").count == 1)
        configuration.enrolment?.issuer = "https://as.example"
        #expect(configuration.headers(for: "https://as.example").count == 1)
        #expect(configuration.headers(for: "https://as.example/").count == 1, "the server's own spelling")
        configuration.enrolment?.issuer = "https://as.example/"
        #expect(configuration.headers(for: "https://as.example").count == 1)
        for other in ["https://former.example", "https://as.example/tenant", "https://as.example/tenant/", nil] {
            #expect(configuration.headers(for: other).isEmpty)
        }
    }
}
