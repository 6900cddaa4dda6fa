import Foundation
import TestSupport
import Testing
import WireText

@testable import Heimdallr

/// A signed id token and the key set that its server would publish, from a signer that is not ours.
struct SignedIDToken {
    var keys: String
    var token: String

    init(
        _ algorithm: String = "RS256", forgery: String? = nil, claims: [String: Any], more: [String: String] = [:]
    ) async throws {
        var order: [String: Any] = ["algorithm": algorithm, "claims": claims]
        order["forgery"] = forgery
        for (name, value) in more { order[name] = value }
        let text = String(decoding: try JSONSerialization.data(withJSONObject: order), as: UTF8.self)
        let output = try await ChildProcess.output(of: [
            try Repository.python(), Repository.fixture("id_token.py"), text,
        ])
        let answer = try #require(
            try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
        token = try #require(answer["token"] as? String)
        keys = String(decoding: try JSONSerialization.data(withJSONObject: try #require(answer["jwks"])), as: UTF8.self)
    }
}

@Suite(.timeLimit(.minutes(3))) struct `The id token` {
    private static let clock = ManualClock()
    private static let now: Int64 = 1_700_000_000

    private static func claims(_ server: LoginServer, nonce: String?, _ change: [String: Any?] = [:]) -> [String: Any] {
        var claims: [String: Any] = [
            "iss": server.issuer, "aud": "app", "sub": "248289761001", "exp": now + 300, "iat": now,
            "email": "ada@example.com", "name": "Ada",
        ]
        claims["nonce"] = nonce
        for (name, value) in change { claims[name] = value }
        return claims
    }

    /// A login of a client that exists. Its answer has an id token signed by a new key.
    private func logIn(
        _ client: Heimdallr, at server: LoginServer, forgery: String? = nil, more: [String: String] = [:],
        publishing: Bool = true
    ) async throws {
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        let claims = Self.claims(server, nonce: attempt.expectation.nonce, ["exp": Self.now + 100_000])
        let signed = try await SignedIDToken(forgery: forgery, claims: claims, more: more)
        if publishing { server["/keys"] = .json(signed.keys) }
        server.giveToken(more: #""id_token":"\#(signed.token)""#)
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
    }

    /// A login whose answer has this id token.
    /// - Returns: who is signed in.
    private func logIn(
        _ algorithm: String = "RS256", forgery: String? = nil, more: [String: String] = [:],
        changing change: [String: Any?] = [:]
    ) async throws -> (name: String?, server: LoginServer) {
        let server = try LoginServer()
        let store = RecordingStore()
        let client = try server.client(store: store, clock: Self.clock.clock) { $0.scope = ["openid"] }
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        let signed = try await SignedIDToken(
            algorithm, forgery: forgery, claims: Self.claims(server, nonce: attempt.expectation.nonce, change),
            more: more)
        server["/keys"] = .json(signed.keys)
        server.giveToken(more: #""refresh_token":"R1","id_token":"\#(signed.token)""#)
        do {
            try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        } catch {
            #expect(await store.saves.isEmpty, "nothing is stored")
            #expect(client.currentToken() == nil)
            #expect(client.status().signedInAs == nil)
            throw error
        }
        #expect(await store.records["calendar"]?.signIn?.idToken == Secret(signed.token))
        return (client.status().signedInAs, server)
    }

    @Test(
        "an id token is taken by each algorithm that two parties can't share a secret of",
        arguments: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"])
    func algorithms(name: String) async throws {
        #expect(try await logIn(name).name == "ada@example.com")
    }

    @Test("a refused id token is an event with its reason, and so is a refused sign-in")
    func events() async throws {
        let server = try LoginServer()
        let client = try server.client(clock: Self.clock.clock) { $0.scope = ["openid"] }
        server.giveToken()
        var events = client.events().makeAsyncIterator()
        await #expect(throws: LoginError.idToken(.missing)) { try await server.logIn(client) }
        #expect(await events.next()?.kind == .loginFailed(.idToken(.missing)))
        await #expect(throws: LoginError.wrongIssuer) {
            try await server.logIn(client, more: "&iss=https://evil.example")
        }
        let event = try #require(await events.next())
        #expect(event.kind == .loginFailed(.wrongIssuer))
        #expect(event.name == "token_failed")
    }

    @Test("the implicit grant sends a nonce with openid, and checks the id token that comes")
    func implicit() async throws {
        let server = try LoginServer()
        for (nonce, fault) in [(nil, nil), ("another", IDTokenFault.nonce)] as [(String?, IDTokenFault?)] {
            let client = try server.client(.implicit, clock: Self.clock.clock) { $0.scope = ["openid"] }
            let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
            let sent = try #require(ReadQuery(attempt.url)["nonce"])
            #expect(sent.count == 43)
            let signed = try await SignedIDToken(claims: Self.claims(server, nonce: nonce ?? sent))
            server["/keys"] = .json(signed.keys)
            let back =
                "\(LoginServer.callback)#access_token=T&token_type=Bearer&id_token=\(signed.token)&state=\(attempt.state)"
            if let fault {
                await #expect(throws: LoginError.idToken(fault)) {
                    try await client.finishLogin(attempt, redirectedTo: back)
                }
            } else {
                try await client.finishLogin(attempt, redirectedTo: back)
                #expect(client.status().signedInAs == "ada@example.com")
            }
        }
        // None has to come.
        let client = try server.client(.implicit, clock: Self.clock.clock) { $0.scope = ["openid"] }
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        try await client.finishLogin(
            attempt, redirectedTo: "\(LoginServer.callback)#access_token=T&state=\(attempt.state)")
        #expect(client.hasAccessToken)
        let plain = try server.client(.implicit) { $0.scope = ["read"] }
        #expect(ReadQuery(try await plain.beginLogin(redirectURI: LoginServer.callback).url)["nonce"] == nil)
    }

    @Test(
        "an id token's at_hash, where it has one, is that of the access token",
        arguments: [
            ("RS256", 256), ("PS256", 256), ("ES256", 256), ("ES384", 384), ("RS512", 512), ("EdDSA", 512),
        ])
    func accessTokenHash(algorithm: String, bits: Int) async throws {
        // Of the server's token, `T1`.
        let hash = try await ChildProcess.output(of: [
            "python3", "-c",
            "import base64,hashlib; d=hashlib.sha\(bits)(b'T1').digest(); "
                + "print(base64.urlsafe_b64encode(d[:len(d)//2]).rstrip(b'=').decode(), end='')",
        ])
        #expect(try await logIn(algorithm, changing: ["at_hash": hash]).name == "ada@example.com")
        guard algorithm == "RS256" else { return }
        for other in [String(hash.reversed()), "", hash + "=="] {
            await #expect(throws: LoginError.idToken(.accessToken)) {
                try await logIn(algorithm, changing: ["at_hash": other])
            }
        }
        await #expect(throws: LoginError.idToken(.accessToken)) { try await logIn(changing: ["at_hash": 1]) }
    }

    @Test("each key of its kind is tried for an id token without a key's name")
    func noKeyID() async throws {
        #expect(try await logIn(forgery: "no kid").name == "ada@example.com")
    }

    @Test(
        "an id token that is forged fails the login",
        arguments: [
            ("none", IDTokenFault.algorithm("none")), ("nOnE", .algorithm("nOnE")), ("hmac", .algorithm("HS256")),
            ("foreign", .signature), ("embedded", .signature), ("payload", .signature), ("cut", .signature),
            ("zero", .signature), ("malleable", .signature), ("critical", .malformed), ("other use", .unknownKey),
            ("other algorithm", .unknownKey), ("short", .unknownKey),
        ])
    func forgeries(_ forgery: String, _ fault: IDTokenFault) async throws {
        await #expect(throws: LoginError.idToken(fault)) { try await logIn(forgery: forgery) }
        if ["foreign", "zero"].contains(forgery) {
            for algorithm in ["ES256", "EdDSA"] {
                await #expect(throws: LoginError.idToken(fault), "\(algorithm)") {
                    try await logIn(algorithm, forgery: forgery)
                }
            }
        }
    }

    @Test("an id token never says where its key is: an address in its head is not asked")
    func addresses() async throws {
        let elsewhere = try RecordingOrigin()
        await #expect(throws: LoginError.idToken(.signature)) {
            try await logIn(forgery: "address", more: ["address": elsewhere.url + "/keys"])
        }
        #expect(elsewhere.requests.isEmpty)
    }

    @Test(
        "the name of a key is a name and no path",
        arguments: ["../../../../etc/passwd", "", "first\u{0}", "/keys/first", "FIRST", "first'; --"])
    func keyNames(name: String) async throws {
        await #expect(throws: LoginError.idToken(.unknownKey)) {
            try await logIn(forgery: "kid", more: ["kid": name])
        }
    }

    @Test("an id token with claims that don't fit fails the login")
    func claims() async throws {
        await #expect(throws: LoginError.idToken(.audience)) { try await logIn(changing: ["aud": "other"]) }
        #expect(try await logIn(changing: ["aud": ["app", "other"], "azp": "app"]).name == "ada@example.com")
    }

    private static let unfit: [(changes: String, fault: IDTokenFault)] = [
        (#""iss":"https://evil.example""#, .issuer), (#""iss":"https://idp.example.com/""#, .issuer),
        (#""iss":null"#, .issuer), (#""aud":"other""#, .audience), (#""aud":["other"]"#, .audience),
        (#""aud":[]"#, .audience), (#""aud":null"#, .audience), (#""aud":["app","other"]"#, .audience),
        (#""aud":["app","other"],"azp":"other""#, .audience), (#""azp":"other""#, .audience), (#""azp":1"#, .audience),
        (#""aud":["app",1]"#, .audience), (#""exp":1699999939"#, .expired), (#""exp":null"#, .expired),
        (#""exp":"1800000000""#, .expired), (#""exp":-1"#, .expired), (#""exp":1e300"#, .expired),
        (#""iat":1700000061"#, .issuedAt), (#""iat":null"#, .issuedAt), (#""iat":"now""#, .issuedAt),
        (#""nbf":1700000100"#, .issuedAt), (#""nbf":"x""#, .issuedAt), (#""nonce":"other""#, .nonce),
        (#""nonce":null"#, .nonce), (#""nonce":1"#, .nonce), (#""sub":null"#, .subject), (#""sub":"""#, .subject),
        (#""sub":1"#, .subject),
    ]

    @Test("claims of an id token are checked one by one", arguments: unfit)
    func eachClaim(_ changes: String, _ fault: IDTokenFault) throws {
        var members: [String: JSONValue] = [
            "iss": .string("https://idp.example.com"), "aud": .string("app"), "sub": .string("1"),
            "exp": .number("1700000000"), "iat": .number("1700000060"), "nonce": .string("N"),
        ]
        func check(_ members: [String: JSONValue]) throws {
            try Claims(.object(members)).check(
                issuer: "https://idp.example.com", client: "app", nonce: "N", now: Self.now)
        }
        #expect(throws: Never.self, "as far as clocks differ") { try check(members) }
        guard case .object(let changed) = try JSONParser.parse(Array("{\(changes)}".utf8)) else { return }
        for (name, value) in changed { members[name] = value == .null ? nil : value }
        #expect(throws: fault) { try check(members) }
    }

    @Test("a key without an identifier is tried for a token with one")
    func unnamedKey() async throws {
        let server = try LoginServer()
        let client = try server.client(clock: Self.clock.clock) { $0.scope = ["openid"] }
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        let claims = Self.claims(server, nonce: attempt.expectation.nonce)
        let signed = try await SignedIDToken(claims: claims)
        server["/keys"] = .json(signed.keys.replacing(/"kid":\s*"[^"]*"/) { _ in #""kid":null"# })
        server.giveToken(more: #""id_token":"\#(signed.token)""#)
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
        #expect(client.status().signedInAs == "ada@example.com")
    }

    @Test(
        "the difference between two clocks is told in seconds, with the tolerance",
        arguments: [
            (["exp": now - 90], IDTokenFault.late(seconds: 90), "expired 90 s ago"),
            (["iat": now + 75], IDTokenFault.early(seconds: 75), "75 s in the future"),
            (["nbf": now + 3600], IDTokenFault.early(seconds: 3600), "3600 s in the future"),
        ])
    func clocks(change: [String: Int64], fault: IDTokenFault, words: String) async throws {
        await #expect(throws: LoginError.idToken(fault)) { try await logIn(changing: change.mapValues { $0 as Any? }) }
        #expect("\(fault)".contains(words) && "\(fault)".contains("60 s are tolerated"))
    }

    @Test("an id token names its person by the first claim that does, printable and short")
    func names() async throws {
        func name(_ change: [String: Any?]) -> String? {
            var claims: [String: JSONValue] = [
                "email": .string("ada@example.com"), "preferred_username": .string("ada"), "name": .string("Ada"),
                "sub": .string("1"),
            ]
            for (name, value) in change {
                claims[name] = value.flatMap { $0 as? String }.map { .string($0) }
                if value as? Bool == false { claims[name] = .bool(false) }
            }
            return Claims(.object(claims)).name
        }
        #expect(name([:]) == "ada@example.com")
        #expect(name(["email_verified": false]) == "ada")
        #expect(name(["email_verified": "false"]) == "ada")
        #expect(name(["email": nil, "preferred_username": " "]) == "Ada")
        #expect(name(["email": nil, "preferred_username": nil, "name": nil]) == "1")
        #expect(name(["email": "a\u{1B}[2J\u{202E}<script>"]) == "a?[2J?<script>")
        #expect(name(["email": String(repeating: "x", count: 5000)])?.count == 257)
    }

    @Test("an id token is ignored when openid was not asked for, and missed when it was")
    func wanted() async throws {
        let server = try LoginServer()
        server.giveToken(more: #""id_token":"nonsense""#)
        let client = try server.client { $0.scope = ["read"] }
        try await server.logIn(client)
        #expect(client.status().signedInAs == nil)
        #expect(client.currentToken()?.extra == [:])
        server.giveToken()
        let other = try server.client { $0.scope = ["openid"] }
        await #expect(throws: LoginError.idToken(.missing)) { try await server.logIn(other) }
        // The server says that it has not granted that.
        server.giveToken(more: #""scope":"read""#)
        try await server.logIn(other)
        #expect(other.status().signedInAs == nil)
    }

    @Test(
        "a text that is no signed token is refused as id token",
        arguments: [
            "", "a", "a.b", "a.b.c", "..", "e30.e30.e30", "eyJhbGciOiJSUzI1NiJ9.e30.", "eyJhbGciOiJSUzI1NiJ9.W10.AA",
            "eyJhbGciOiJSUzI1NiJ9.e30.AA.AA", "eyJhbGciOiJSUzI1NiJ9=.e30.AA", "eyJhbGciOiJSUzI1NiIsImtpZCI6MX0.e30.AA",
        ])
    func malformed(text: String) {
        #expect(throws: IDTokenFault.malformed) { try SignedToken(Array(text.utf8)) }
        let huge = String(repeating: "A", count: SignedToken.maxBytes + 1)
        #expect(throws: IDTokenFault.malformed) { try SignedToken(Array(huge.utf8)) }
    }

    @Test("an unknown key is asked for once a minute at most; a new one is found")
    func rotation() async throws {
        let server = try LoginServer()
        let clock = ManualClock()
        let client = try server.client(clock: clock.clock) { $0.scope = ["openid"] }
        func attempt(_ keys: Bool) async throws {
            try await logIn(client, at: server, forgery: "kid", more: ["kid": keys ? "first" : "x"], publishing: keys)
        }
        try await attempt(true)
        #expect(server.requests("/keys").count == 1)
        for _ in 0..<3 {
            await #expect(throws: LoginError.idToken(.unknownKey)) { try await attempt(false) }
        }
        #expect(server.requests("/keys").count == 1)
        clock.advance(by: .seconds(60))
        await #expect(throws: LoginError.idToken(.unknownKey)) { try await attempt(false) }
        #expect(server.requests("/keys").count == 2)
    }

    @Test("a new key is found for a token that names none, too")
    func unnamedRotation() async throws {
        let server = try LoginServer()
        let clock = ManualClock()
        let client = try server.client(clock: clock.clock) { $0.scope = ["openid"] }
        try await logIn(client, at: server, forgery: "no kid")
        await #expect(throws: LoginError.idToken(.signature)) {
            try await logIn(client, at: server, forgery: "no kid")
        }
        clock.advance(by: .seconds(60))
        try await logIn(client, at: server, forgery: "no kid")
        #expect(server.requests("/keys").count == 2)
    }

    @Test("after a signature that does not fit the keys are asked for again, once a minute at most")
    func newKeyUnderAnOldName() async throws {
        let clock = ManualClock()
        let server = try LoginServer()
        let client = try server.client(clock: clock.clock) { $0.scope = ["openid"] }
        // All keys have the same name.
        func attempt(publishing: Bool) async throws { try await logIn(client, at: server, publishing: publishing) }
        try await attempt(publishing: true)
        #expect(server.requests("/keys").count == 1)
        for _ in 0..<2 {
            await #expect(throws: LoginError.idToken(.signature)) { try await attempt(publishing: true) }
        }
        #expect(server.requests("/keys").count == 1)
        clock.advance(by: .seconds(61))
        try await attempt(publishing: true)
        #expect(server.requests("/keys").count == 2)
        // Keys that could not be fetched count as well.
        clock.advance(by: .seconds(61))
        server["/keys"] = LoginServer.Reply(status: 503)
        await #expect(throws: LoginError.idToken(.keys(.status(503)))) { try await attempt(publishing: false) }
        await #expect(throws: LoginError.idToken(.signature)) { try await attempt(publishing: true) }
        #expect(server.requests("/keys").count == 3)
    }

    @Test("keys that can't be had, or are no keys, fail the login and say so")
    func keys() async throws {
        for (reply, fault) in [
            (LoginServer.Reply(status: 404), IDTokenFault.keys(.status(404))),
            (.json("<!doctype html>"), .keys(.malformed)), (.json(#"{"keys":{}}"#), .keys(.malformed)),
            (.json(#"{"keys":[null,1,{},{"kty":"RSA"},{"kty":"RSA","n":"AA","e":"AQAB"}]}"#), .unknownKey),
            (
                .json(
                    #"{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"OKP","crv":"Ed25519","x":"AA"}]}"#),
                .unknownKey
            ),
        ] {
            let server = try LoginServer()
            let client = try server.client(clock: Self.clock.clock) { $0.scope = ["openid"] }
            let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
            let signed = try await SignedIDToken(claims: Self.claims(server, nonce: attempt.expectation.nonce))
            server["/keys"] = reply
            server.giveToken(more: #""id_token":"\#(signed.token)""#)
            await #expect(throws: LoginError.idToken(fault)) {
                try await client.finishLogin(attempt, redirectedTo: server.answer(attempt))
            }
        }
        let server = try LoginServer()
        server[LoginServer.wellKnown] = .json(server.metadata(leavingOut: ["jwks_uri"]))
        let client = try server.client(clock: Self.clock.clock) { $0.scope = ["openid"] }
        server.giveToken(more: #""id_token":"eyJhbGciOiJSUzI1NiJ9.e30.AA""#)
        await #expect(throws: LoginError.idToken(.keys(.missing("jwks_uri")))) { try await server.logIn(client) }
    }
}
