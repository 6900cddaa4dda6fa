import Cryptography
import Foundation
import TestSupport
import Testing
import WireText

@testable import Heimdallr

@Suite("the person whom an id token names", .timeLimit(.minutes(2)))
struct SignedInPersonTests {
    private static func claims(_ server: LoginServer, _ attempt: LoginAttempt, _ email: String?) -> [String: Any] {
        let now = ManualClock().clock.wallClock()
        var claims: [String: Any] = [
            "iss": server.issuer, "aud": "app", "sub": "1", "exp": now + 100_000, "iat": now, "email_verified": true,
        ]
        claims["email"] = email
        claims["nonce"] = attempt.expectation.nonce
        return claims
    }

    @Test("a claim that is null is absent")
    func nulls() throws {
        let text = #"{"iss":"i","aud":["app"],"azp":null,"sub":"1","exp":2000000000,"iat":1,"nbf":null,"at_hash":null}"#
        let claims = Claims(try JSONParser.parse(Array(text.utf8)))
        try claims.check(issuer: "i", client: "app", nonce: nil, now: 1_700_000_000)
        try claims.check(Secret("T"), by: .rsa(.sha256))
        // {"alg":"RS256","kid":null}
        #expect(try SignedToken(Array("eyJhbGciOiJSUzI1NiIsImtpZCI6bnVsbH0.e30.AA".utf8)).keyID == nil)
    }

    @Test(
        "a person counts by subject, or by what the server has verified",
        arguments: [
            (["1"], #""sub":"1""#, true), (["2", "1"], #""sub":"1""#, true), (["2"], #""sub":"1""#, false),
            (["Ada@Example.com"], #""sub":"1","email":"ada@example.com","email_verified":true"#, true),
            (["ada@example.com"], #""sub":"1","email":"ada@example.com","email_verified":"true""#, true),
            (["ada@example.com"], #""sub":"1","email":"ada@example.com""#, false),
            (["ada@example.com"], #""sub":"1","email":"ada@example.com","email_verified":false"#, false),
            (["@example.com"], #""sub":"1","email":"x@EXAMPLE.com","email_verified":true"#, true),
            (["@example.com"], #""sub":"1","email":"x@evil-example.com","email_verified":true"#, false),
            (["@example.com"], #""sub":"1","email":"x@example.com@evil.com","email_verified":true"#, false),
            (["@example.com"], #""sub":"1","email":"x@example.com""#, false),
            (["@example.com"], #""sub":"1","hd":"example.com""#, true),
            (["@example.com"], #""sub":"@example.com","preferred_username":"x@example.com""#, false),
            // Text that looks the same, but is other bytes: U+212A for K, a letter with a combining mark.
            (["K1"], #""sub":"\u212a1""#, false), (["\u{E4}"], #""sub":"a\u0308""#, false),
            (["@bank.example"], #""sub":"1","email":"x@ban\u212a.example","email_verified":true"#, false),
            (["k@bank.example"], #""sub":"1","email":"\u212a@bank.example","email_verified":true"#, false),
            (["@bank.example"], #""sub":"1","email":"bank.example","email_verified":true"#, false),
            (["@bank.example"], #""sub":"1","email":"@bank.example","email_verified":true"#, false),
            (["@bank.example"], #""sub":"1","email":"x@evil@bank.example","email_verified":true"#, false),
            ([], #""sub":"1""#, true),
        ])
    func persons(expected: [String], claims: String, isOne: Bool) throws {
        let claims = Claims(try JSONParser.parse(Array("{\(claims)}".utf8)))
        if isOne { return try claims.check(isOneOf: expected) }
        #expect(throws: IDTokenFault.person) { try claims.check(isOneOf: expected) }
    }

    @Test("another person's login is refused where one is expected, and told where none is")
    func otherPerson() async throws {
        let (server, clock) = (try LoginServer(), ManualClock())
        func logIn(_ client: Heimdallr, as email: String?) async throws {
            // Each token here has a new key, and keys are asked for once a minute.
            clock.advance(by: .seconds(61))
            let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
            let claims = Self.claims(server, attempt, email)
            let signed = try await SignedIDToken(claims: claims)
            server["/keys"] = .json(signed.keys)
            server.giveToken(more: email == nil ? #""scope":"openid""# : #""id_token":"\#(signed.token)""#)
            try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        }
        let tied = try server.client(clock: clock.clock) {
            $0.scope = ["openid"]
            $0.expectedPersons = ["ada@example.com"]
        }
        try await logIn(tied, as: "ada@example.com")
        let token = tied.currentToken()
        await #expect(throws: LoginError.idToken(.person)) { try await logIn(tied, as: "bob@example.com") }
        await #expect(throws: LoginError.idToken(.missing)) { try await logIn(tied, as: nil) }
        #expect(tied.currentToken() == token && tied.status().signedInAs == "ada@example.com")

        let free = try server.client(clock: clock.clock) { $0.scope = ["openid"] }
        try await logIn(free, as: "ada@example.com")
        try await logIn(free, as: "ada@example.com")
        #expect(free.status().formerlySignedInAs == nil)
        try await logIn(free, as: "bob@example.com")
        #expect(free.status().signedInAs == "bob@example.com")
        #expect(free.status().formerlySignedInAs == "ada@example.com")
    }
}
