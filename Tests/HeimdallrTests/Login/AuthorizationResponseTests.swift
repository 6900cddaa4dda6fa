import Testing

@testable import Heimdallr

@Suite struct `What the browser brings back` {
    private static let callback = "http://127.0.0.1:8081/callback"

    private static func expectation(
        _ method: LoginMethod = .browser, issuer: String? = "https://idp.example.com", requiresIssuer: Bool = false
    ) -> LoginAttempt.Expectation {
        LoginAttempt.Expectation(
            method: method, issuer: issuer, requiresIssuer: requiresIssuer,
            tokenEndpoint: "https://idp.example.com/token")
    }

    @discardableResult
    private func answer(
        _ url: String, redirectURI: String = callback, _ expectation: LoginAttempt.Expectation = Self.expectation()
    ) throws(LoginError) -> AuthorizationResponse {
        let answer = try AuthorizationResponse(url, redirectURI: redirectURI, state: "S", expecting: expectation)
        try answer.checkRefusal(hiding: [Secret("hush")])
        return answer
    }

    @Test("[48] a value is split off at the first =, and decoded once")
    func values() throws {
        #expect(try answer("\(Self.callback)?code=ab==&state=S").code() == Secret("ab=="))
        #expect(try answer("\(Self.callback)?state=S&code=a%2Bb%252F+c").code() == Secret("a+b%2F c"))
        #expect(try answer("\(Self.callback)?code=x&state=S#_=_").code() == Secret("x"))
        #expect(try answer("\(Self.callback)?code=x&state=S&iss=https%3A%2F%2Fidp.example.com").code() == Secret("x"))
    }

    @Test(
        "[47] [28] the redirect URI is matched exactly: no prefix, no other case, no other port, no missing query",
        arguments: [
            "http://127.0.0.1:8081/callback2?code=x&state=S", "http://127.0.0.1:8081/callback/?code=x&state=S",
            "http://127.0.0.1:8081/Callback?code=x&state=S", "HTTP://127.0.0.1:8081/callback?code=x&state=S",
            "http://127.0.0.1/callback?code=x&state=S", "http://127.0.0.1:08081/callback?code=x&state=S",
            "http://127.0.0.1:8081@evil.example/callback?code=x&state=S",
            "http://127.0.0.1:8081/call%62ack?code=x&state=S", "https://127.0.0.1:8081/callback?code=x&state=S",
            "http://localhost:8081/callback?code=x&state=S", "/callback?code=x&state=S", "?code=x&state=S", "",
            "http://127.0.0.1:8081/x/../callback?code=x&state=S", " http://127.0.0.1:8081/callback?code=x&state=S",
        ])
    func redirect(url: String) {
        #expect(throws: LoginError.foreignRedirect) { try answer(url) }
    }

    @Test("[47] the redirect URI's own query has to come back as it is, whatever is added around it")
    func ownQuery() throws {
        let own = "https://proxy.example.com/cb?tenant=a%2Fb"
        #expect(try answer("\(own)&code=x&state=S", redirectURI: own).code() == Secret("x"))
        #expect(
            try answer("https://proxy.example.com/cb?code=x&tenant=a%2Fb&state=S", redirectURI: own).code()
                == Secret("x"))
        for url in [
            "https://proxy.example.com/cb?code=x&state=S", "https://proxy.example.com/cb?tenant=a/b&code=x&state=S",
            "https://proxy.example.com/cb?tenant=other&code=x&state=S",
        ] {
            #expect(throws: LoginError.foreignRedirect) { try answer(url, redirectURI: own) }
        }
    }

    @Test("a private scheme and a host without a path come back as browsers write them")
    func shapes() throws {
        let app = "com.example.app:/oauth"
        #expect(try answer("\(app)?code=x&state=S", redirectURI: app).code() == Secret("x"))
        let root = "http://127.0.0.1:8081"
        #expect(try answer("\(root)/?code=x&state=S", redirectURI: root).code() == Secret("x"))
    }

    @Test(
        "an answer with a state that is absent, empty, another, or twice is refused before anything else is read",
        arguments: [
            "code=x", "code=x&state=", "code=x&state=s", "code=x&state=S%20", "code=x&state=SS", "error=access_denied",
            "error=access_denied&state=other", "code=x&STATE=S", "code=x#state=S",
        ])
    func state(query: String) {
        #expect(throws: LoginError.wrongState) { try answer("\(Self.callback)?\(query)") }
    }

    @Test(
        "a parameter that comes twice, or an escape that is cut off, makes the answer unreadable",
        arguments: [
            "code=x&state=S&state=S", "code=x&code=y&state=S", "code=x&state=S&c%6fde=y", "code=%&state=S",
            "code=%4&state=S", "code=%zz&state=S", "code=%ff&state=S", "code=x&state=S&error=a&error=b",
        ])
    func unreadable(query: String) {
        #expect(throws: LoginError.malformedRedirect) { try answer("\(Self.callback)?\(query)") }
    }

    @Test(
        "unknown parameters may repeat and be unreadable; known ones come once",
        arguments: ["scope=a&scope=b&", "session_state=%&session_state=%zz&", "x=1&x=2&x=3&", "%=1&%=2&", "&&=&=&"])
    func foreign(more: String) throws {
        #expect(try answer("\(Self.callback)?\(more)code=x&state=S").code() == Secret("x"))
        #expect(try answer("\(Self.callback)?code=x&state=S&\(more)").code() == Secret("x"))
        for twice in ["code=y", "state=S", "iss=https://idp.example.com&iss=https://idp.example.com"] {
            #expect(throws: LoginError.malformedRedirect) {
                try answer("\(Self.callback)?code=x&state=S&\(more)\(twice)")
            }
        }
    }

    @Test("an error without a state is read, made printable, and nothing else is")
    func denialWithoutState() throws {
        func read(_ answer: String) -> OAuthError? {
            AuthorizationResponse.refusalWithoutState(in: answer[...], hiding: [Secret("hush")])
        }
        let error = read("error=access_denied&error_description=no%1B+hush&state=")
        #expect(error == OAuthError(status: 302, code: .accessDenied, detail: "no? <redacted>"))
        for answer in ["error=access_denied&state=S", "code=x", "", "error=a&error=b", "error=%"] {
            #expect(read(answer) == nil, "\(answer)")
        }
        let long = String(repeating: "y", count: 2000)
        #expect((read("error=x&error_description=\(long)")?.detail?.count ?? 999) <= 257)
    }

    @Test("an answer with neither a code nor an error, a code that is none, or without end is refused")
    func useless() {
        for query in ["state=S", "state=S&code=", "state=S&code=%0A", "state=S&code", "state=S&code=%C3%A9"] {
            #expect(throws: LoginError.malformedRedirect) { try answer("\(Self.callback)?\(query)").code() }
        }
        let long = "\(Self.callback)?state=S&code=" + String(repeating: "x", count: 70_000)
        #expect(throws: LoginError.malformedRedirect) { try answer(long) }
        let many = "\(Self.callback)?state=S&code=x" + (0..<1000).map { "&p\($0)=" }.joined()
        #expect(throws: LoginError.malformedRedirect) { try answer(many) }
    }

    @Test("an iss of another server is refused, on errors too; one that is promised has to be there")
    func issuer() throws {
        for iss in ["https://evil.example", "https://idp.example.com/", "HTTPS://idp.example.com", ""] {
            for what in ["code=x", "error=access_denied"] {
                #expect(throws: LoginError.wrongIssuer) {
                    try answer("\(Self.callback)?\(what)&state=S&iss=\(iss)")
                }
            }
        }
        #expect(throws: LoginError.wrongIssuer) {
            try answer("\(Self.callback)?code=x&state=S", Self.expectation(requiresIssuer: true)).code()
        }
        #expect(throws: LoginError.refused(OAuthError(status: 302, code: .accessDenied))) {
            try answer("\(Self.callback)?error=access_denied&state=S", Self.expectation(requiresIssuer: true))
        }
        #expect(throws: Never.self) {
            try answer("\(Self.callback)?code=x&state=S&iss=anything", Self.expectation(issuer: nil))
        }
    }

    @Test(
        "[46] [28] [57] an error is named as the server named it, at once",
        arguments: [
            OAuthError.Code.accessDenied, .invalidRequest, .unauthorizedClient, .unsupportedResponseType, .invalidScope,
            .serverError, .temporarilyUnavailable, .invalidTarget, OAuthError.Code(rawValue: "login_required"),
        ])
    func errors(code: OAuthError.Code) throws {
        let url = "\(Self.callback)?error=\(code)&error_description=no%2C+really&state=S"
        let error = OAuthError(status: 302, code: code, detail: "no, really")
        #expect(throws: LoginError.refused(error)) { try answer(url) }
        #expect(LoginError.refused(error).description.contains("\(code)"))
        #expect(throws: LoginError.refused(error), "the code beside it is not used") {
            try answer(url + "&code=x").code()
        }
    }

    @Test("what an error says is made printable, cut, and cleared of our secrets")
    func printable() throws {
        let error = try #require(
            throws: LoginError.self,
            performing: {
                let long = String(repeating: "x", count: 1000)
                try answer("\(Self.callback)?state=S&error=a%1B%5B2Jb&error_description=hush%0D%0A%E2%80%AE\(long)")
            })
        guard case .refused(let said) = error else { throw error }
        #expect(said.code.rawValue == "a?[2Jb")
        #expect(said.detail?.hasPrefix("<redacted>???xx") == true)
        #expect((said.detail?.count ?? 0) <= 257)
    }

    @Test("bytes of any kind are read without a trap")
    func anything() {
        var chance = SeededGenerator(seed: 7)
        let good = Array("\(Self.callback)?code=a%2Bb&state=S&iss=https%3A%2F%2Fidp.example.com&error=x#a=b%20&c".utf8)
        let jwt = Array("eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.eyJpc3MiOiJhIiwiYXVkIjpbImEiXSwiZXhwIjoxZTMwMH0.AAAA".utf8)
        let documents = [
            #"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}"#,
            #"{"issuer":"https://a.example","token_endpoint":"https://a.example/t","jwks_uri":"https://a.example/k"}"#,
            #"{"device_code":"D","user_code":"A","verification_uri":"https://a.example/d","interval":5,"expires_in":6}"#,
        ].map { Array($0.utf8) }
        func changed(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            for _ in 0..<Int.random(in: 1...4, using: &chance) {
                let index = Int.random(in: bytes.indices, using: &chance)
                switch Int.random(in: 0..<3, using: &chance) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &chance)
                case 1: bytes.remove(at: index)
                default: bytes.insert(contentsOf: "%=&#?.\"{".utf8.shuffled(using: &chance).prefix(2), at: index)
                }
            }
            return bytes
        }
        for _ in 0..<1000 {
            let url = String(decoding: changed(good), as: UTF8.self)
            for method in [LoginMethod.browser, .implicit] {
                let answer = try? AuthorizationResponse(
                    url, redirectURI: Self.callback, state: "S", expecting: Self.expectation(method))
                _ = try? answer?.code()
                _ = try? answer?.token()
            }
            _ = try? RedirectURI(url)
            if let token = try? SignedToken(changed(jwt)) {
                let claims = Claims(token.payload)
                _ = claims.name
                try? claims.check(issuer: "a", client: "a", nonce: "n", now: .max)
            }
            _ = try? KeySet(changed(documents[0]))
            _ = try? ServerMetadata(changed(documents[1]), issuer: "https://a.example")
            _ = DeviceAuthorization(changed(documents[2]))
        }
    }

    // MARK: Implicit

    private func token(_ fragment: String, query: String = "") throws(LoginError) -> TokenResponse {
        try answer("\(Self.callback)\(query)#\(fragment)", Self.expectation(.implicit)).token()
    }

    @Test("[50] access_token, expires_in and username of a fragment are taken, and the rest is kept")
    func implicit() throws {
        let response = try token("access_token=T&expires_in=7199&username=guest&ssl=true&state=S")
        #expect(response.accessToken == Secret("T"))
        #expect(response.expiresIn == 7199)
        #expect(response.tokenType == "Bearer")
        #expect(response.extra == ["username": .string("guest"), "ssl": .string("true")])
        #expect(response.refreshToken == nil)
        #expect(try token("access_token=T&token_type=mac&scope=a%20b&state=S").tokenType == "mac")
        #expect(try token("access_token=T&scope=a%20b&state=S").scope == ["a", "b"])
        #expect(try token("access_token=T&refresh_token=R&id_token=I&state=S").refreshToken == nil)
    }

    @Test("[51] a token that holds = is whole, a pair without = is no crash, and nothing is decoded twice")
    func implicitValues() throws {
        #expect(try token("access_token=a=b%3D%253D&state=S&flag").accessToken == Secret("a=b=%3D"))
        #expect(throws: LoginError.malformedRedirect) { try token("state=S&flag") }
        #expect(throws: LoginError.malformedRedirect) { try token("access_token=T&access_token=U&state=S") }
    }

    @Test("[52] an error in the fragment, or in the query, is a failure and no blank token")
    func implicitError() {
        let error = LoginError.refused(OAuthError(status: 302, code: .accessDenied))
        #expect(throws: error) { try token("error=access_denied&state=S") }
        #expect(throws: error) {
            try answer("\(Self.callback)?error=access_denied&state=S", Self.expectation(.implicit)).token()
        }
        #expect(throws: LoginError.wrongState) { try token("access_token=T&state=other") }
        #expect(throws: LoginError.malformedRedirect) { try token("access_token=T&scope=a&scope=b&state=S") }
    }

    @Test("what stands in the query beside an answer behind # is not the answer, and harms nothing")
    func implicitQuery() throws {
        for query in ["?session_state=1", "?code=x", "?x=1&x=2", "?state=other&error=access_denied", "?%"] {
            #expect(try token("access_token=T&state=S", query: query).accessToken == Secret("T"), "\(query)")
        }
        #expect(throws: LoginError.wrongState) { try token("access_token=T", query: "?state=S") }
        #expect(throws: LoginError.refused(OAuthError(status: 302, code: .accessDenied))) {
            try token("_=_", query: "?error=access_denied&state=S")
        }
        let response = try token("access_token=T&state=S&username=guest&x=1&x=2&id_token=I")
        #expect(response.extra == ["username": .string("guest")], "a repeated one is nobody's to choose from")
        #expect(response.idToken == Secret("I"))
    }

    // MARK: The redirect URI itself

    @Test(
        "a redirect URI that can't be safe is not used",
        arguments: [
            "", "/callback", "callback", "127.0.0.1:8081/callback", "http://example.com/cb",
            "http://127.0.0.1.evil.example/cb", "http://localhost.evil.example/", "https://proxy.example.com/cb#",
            "https://proxy.example.com/cb#x", "https:///cb", "https://user@proxy.example.com/cb", "HTTPS://a.example/",
            "https://A.example/cb", "https://proxy.example.com/c b", "https://proxy.example.com/cb?state=1",
            "https://proxy.example.com/cb?code", "http://[::2]/cb", "https://proxy.example.com:x/cb", "app:",
            "https://proxy.example.com\\@evil.example/cb", "http://127.0.0.1:99999/cb",
        ])
    func unsafe(uri: String) {
        #expect(throws: LoginError.badRedirectURI) { try RedirectURI(uri) }
    }

    @Test(
        "a redirect URI on https, on loopback, or of a private scheme is used",
        arguments: [
            "https://proxy.example.com/cb?x=1", "http://127.0.0.1:8081/callback", "http://[::1]:8081/callback",
            "http://localhost:1/", "http://localhost", "com.example.app:/oauth", "urn:ietf:wg:oauth:2.0:oob",
        ])
    func usable(uri: String) {
        #expect(throws: Never.self) { try RedirectURI(uri) }
    }
}
