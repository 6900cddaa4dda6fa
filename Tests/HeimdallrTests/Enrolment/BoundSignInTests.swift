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
}
