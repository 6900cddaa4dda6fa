import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Sign-ins at servers as public reports describe them` {
    @Test func `a server that names its issuer with a final slash is found without it, and iss counts as issued`()
        async throws
    {
        let server = try LoginServer()
        server[LoginServer.wellKnown] = .json(
            server.metadata(
                issuer: server.issuer + "/", more: #""authorization_response_iss_parameter_supported":true"#))
        server.giveToken()
        let client = try server.client()
        try await server.logIn(client, more: "&iss=\(server.issuer)/")
        #expect(client.status().issuer == server.issuer + "/")
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        await #expect(throws: LoginError.wrongIssuer) {
            try await client.finishLogin(
                attempt, redirectedTo: server.answer(attempt, more: "&iss=\(server.issuer)"))
        }
    }

    @Test(arguments: [("", "/"), ("/", "")])
    func `an API and its server may differ by the final slash of the issuer`(api: String, own: String) async throws {
        let server = try LoginServer()
        let address = server.url + "/mcp"
        server[EnrollingServer.resourcePath] = .json(
            #"{"resource":"\#(address)","authorization_servers":["\#(server.issuer)\#(api)"]}"#)
        server[LoginServer.wellKnown] = .json(
            server.metadata(issuer: server.issuer + own, more: #""code_challenge_methods_supported":["S256"]"#))
        server.giveToken()
        for pinned in [nil, server.issuer, server.issuer + "/"] {
            var configuration = HeimdallrConfiguration()
            configuration.enrolment = EnrolmentSettings(resource: address)
            configuration.enrolment?.issuer = pinned
            configuration.allowPlaintext = true
            let client = try Heimdallr(
                configuration: configuration, credentials: OAuthClientSecretCredentials(identifier: "app"),
                grant: InteractiveGrant(), httpClient: LoopbackHTTPClient())
            #expect(try await client.signInOffer(redirectURI: LoginServer.callback).issuer == server.issuer + own)
            try await server.logIn(client, more: "&iss=\(server.issuer)\(own)")
            #expect(try await client.refreshedToken().value == Secret("T1"))
        }
    }

    @Test func `the operator's word for PKCE outweighs a document's silence, but no list`() async throws {
        let api = try EnrollingServer(more: #""registration_endpoint":"%/register""#)
        func verifier(_ pkce: PKCE?) async throws -> (challenge: String?, verifier: String?) {
            let client = try api.client(identifier: "app") {
                $0.issuer = api.issuer
                $0.pkce = pkce
            }
            let query = try await api.logIn(client)
            return (query["code_challenge_method"], api.tokenForms.last?["code_verifier"])
        }
        let said = try await verifier(.s256)
        #expect(said.challenge == "S256" && said.verifier != nil)
        await #expect(throws: LoginError.discovery(.noPKCE)) { try await verifier(nil) }
        api.describe(#""code_challenge_methods_supported":["plain"]"#)
        await #expect(throws: LoginError.discovery(.otherPKCE)) { try await verifier(.s256) }
    }

    @Test func `LinkedIn gets no code_verifier and no nonce, and its id token counts for nothing`() async throws {
        let server = try LoginServer()
        server.giveToken(more: #""id_token":"not.a.token","scope":"email,openid""#)
        let client = try server.client(secret: "s") {
            $0.scope = ["openid", "email"]
            $0.pkce = .off
            $0.usesIDToken = false
        }
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        let query = ReadQuery(attempt.url)
        #expect(query["code_challenge"] == nil && query["nonce"] == nil && query["state"] != nil)
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        let form = ReadQuery(query: try #require(server.requests("/token").last).text)
        #expect(form["code_verifier"] == nil && form["code"] == "C1")
        #expect(client.currentToken()?.value == Secret("T1") && client.status().signedInAs == nil)
    }

    @Test func `Slack's tokens of the person are read in their member, and a refresh has them at the top`()
        async throws
    {
        let server = try LoginServer()
        server["/token"] = .json(
            #"{"ok":true,"access_token":"bot","refresh_token":"R-bot","token_type":"bot","authed_user":{"id":"U1","#
                + #""access_token":"T1","token_type":"user","expires_in":43200,"refresh_token":"R1"}}"#)
        let client = try server.client(secret: "s") {
            $0.tokenMember = "authed_user.access_token"
            $0.treatAsBearer = ["user"]
        }
        try await server.logIn(client)
        #expect(client.currentToken()?.value == Secret("T1"))
        server["/token"] = .json(
            #"{"ok":true,"access_token":"T2","token_type":"user","expires_in":43200,"refresh_token":"R2"}"#)
        #expect(try await client.refreshedToken().value == Secret("T2"))
        #expect(ReadQuery(query: try #require(server.requests("/token").last).text)["refresh_token"] == "R1")
        #expect(client.status().hasRefreshToken)
    }

    @Test func `a client of UAA with an empty secret authenticates with it`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(
            endpoint, credentials: OAuthClientSecretCredentials(identifier: "cf", secret: Secret("")))
        #expect(try await client.accessToken().value == Secret("T1"))
        #expect(endpoint.requests[0].field("Authorization") == "Basic Y2Y6")
    }
}
