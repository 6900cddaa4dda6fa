import Foundation
import TestSupport
import Testing

@testable import Heimdallr

@Suite(.timeLimit(.minutes(2))) struct `What the server says of its user` {
    private static let clock = ManualClock()

    /// The name after a login whose id token has none, where the server says this of its user.
    private func signIn(
        _ reply: LoginServer.Reply?, claims more: [String: String] = [:]
    ) async throws -> (name: String?, asked: [RecordedRequest]) {
        let server = try LoginServer()
        if let reply { server["/userinfo"] = reply }
        server[LoginServer.wellKnown] = .json(
            server.metadata(more: "\"userinfo_endpoint\":\"\(server.url)/userinfo\""))
        let client = try server.client(clock: Self.clock.clock) { $0.scope = ["openid"] }
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        var claims: [String: Any] = [
            "iss": server.issuer, "aud": "app", "sub": "248289761001", "exp": 1_700_000_300, "iat": 1_700_000_000,
        ]
        claims["nonce"] = attempt.expectation.nonce
        for (name, value) in more { claims[name] = value }
        let signed = try await SignedIDToken(claims: claims)
        server["/keys"] = .json(signed.keys)
        server.giveToken(more: #""id_token":"\#(signed.token)""#)
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        return (client.status().signedInAs, server.requests("/userinfo"))
    }

    @Test("without a name in its id token the server is asked for one, once, with the new token")
    func userInfo() async throws {
        let (name, asked) = try await signIn(.json(#"{"sub":"248289761001","name":"Ada Lovelace\n"}"#))
        #expect(name?.hasPrefix("Ada Lovelace") == true)
        #expect(name?.contains("\n") == false)
        #expect(asked.count == 1)
        #expect(asked.first?.method == "GET")
        #expect(asked.first?.fields.value("Authorization") == "Bearer T1")
        let known = try await signIn(.json(#"{"sub":"248289761001","name":"X"}"#), claims: ["name": "Ada"])
        #expect(known.name == "Ada")
        #expect(known.asked.isEmpty)
    }

    @Test("no answer of the server about its user harms a login")
    func badUserInfo() async throws {
        let replies: [LoginServer.Reply?] = [
            nil, .json(#"{"sub":"somebody else","name":"Eve"}"#), .json(#"{"name":"Eve"}"#), .json("[]"), .json(""),
            .json(#"{"sub":"248289761001","name":"Eve"}"#, status: 401), LoginServer.Reply(flood: 1 << 20),
            LoginServer.Reply(closes: true),
            LoginServer.Reply(status: 302, fields: [("Location", "/elsewhere")]), .json(#"{"sub":"248289761001"}"#),
        ]
        for reply in replies { #expect(try await signIn(reply).name == "248289761001") }
    }
}
