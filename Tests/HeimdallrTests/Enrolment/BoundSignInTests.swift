import TestSupport
import Testing

@testable import Heimdallr

@Suite("A sign-in at a server that an API named is bound to that server, client, resource and scope")
struct BoundSignInTests {
    @Test("assertions are for the issuer, also at a server whose metadata has another server's token endpoint")
    func audience() async throws {
        let (api, other) = (try EnrollingServer(), try EnrollingServer())
        let key = try await ForeignKeys.make("p256")
        let members =
            #""token_endpoint":"\#(other.server.url)/token","code_challenge_methods_supported":["S256"],"#
            + #""pushed_authorization_request_endpoint":"\#(api.server.url)/par""#
        api.server[LoginServer.wellKnown + "/as"] = .json(
            api.server.metadata(more: members, leavingOut: ["token_endpoint"]))
        api.server["/par"] = .json(#"{"request_uri":"urn:x","expires_in":60}"#, status: 201)
        api.server["/revoke"] = .json("{}")
        let client = try api.client(identifier: "app", key: key)
        try await api.logIn(client)
        #expect(await client.logOut().isComplete)
        let pushed = api.server.requests("/par")
        let (codes, revoked) = (other.server.requests("/token"), api.server.requests("/revoke"))
        #expect(pushed.count == 1 && codes.count == 1 && revoked.count == 2)
        for request in pushed + codes + revoked {
            let assertion = try #require(ReadQuery(query: request.text)["client_assertion"])
            let (_, claims) = try await ForeignKeys.verify(assertion, key: key, algorithm: "ES256")
            #expect(claims["aud"] as? String == api.issuer, "\(request.target)")
        }
    }

    /// Difference between two sign-ins at one server.
    enum Change: CaseIterable { case client, scope, resource }

    @Test(
        "a code goes out only with the client, the scopes and the resource that its sign-in began with",
        arguments: Change.allCases)
    func begun(_ change: Change) async throws {
        let api = try EnrollingServer()
        let client = try api.client()
        let first = try await client.beginLogin(redirectURI: LoginServer.callback)
        switch change {
        case .client:
            try await client.useClient(
                identifier: "typed", secret: Secret("s3cret"), redirectURI: LoginServer.callback)
        case .scope:
            client.challenged(
                ResourceChallenge(url: api.api, scope: "write", error: "insufficient_scope"), hadToken: true)
        case .resource:
            api.publish(resource: api.server.url)
            client.challenged(ResourceChallenge(url: api.api), hadToken: true)
        }
        let second = try await client.beginLogin(redirectURI: LoginServer.callback)
        await #expect(throws: LoginError.reconfigured) {
            try await client.finishLogin(first, redirectedTo: api.server.answer(first))
        }
        #expect(api.server.requests("/token").isEmpty)
        try await client.finishLogin(second, redirectedTo: api.server.answer(second))
        #expect(client.currentToken()?.value == Secret("T1"))
    }

    @Test("a shared sign-in carries its binding to another process; one of an earlier form is refused")
    func shared() async throws {
        let api = try EnrollingServer()
        let client = try api.client()
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        func finish(_ content: Secret) async throws {
            let login = PortableLogin(content, until: .now + .seconds(60))
            guard case .browser(let attempt)? = login?.kind else { throw TestFailure("unreadable") }
            try await client.finishLogin(attempt, redirectedTo: api.server.answer(attempt))
        }
        let content = PortableLogin(attempt).content
        let earlier = content.revealed.replacing(/"enrolment":"[^"]*"/, with: #""enrolled":true"#)
        #expect(earlier != content.revealed)
        await #expect(throws: LoginError.reconfigured) { try await finish(Secret(earlier)) }
        #expect(api.server.requests("/token").isEmpty)
        try await finish(content)
        #expect(client.currentToken()?.value == Secret("T1"))
    }
}
