import Testing

@testable import Heimdallr

@Suite("the answer of a login as people paste it")
struct PastedAnswerTests {
    private static func attempt(
        _ redirectURI: String, _ method: LoginMethod = .browser, hasPKCE: Bool = true
    ) -> LoginAttempt {
        LoginAttempt(
            client: "api", url: "", state: "STATE", redirectURI: redirectURI, expiresAt: .now,
            expectation: LoginAttempt.Expectation(
                method: method, verifier: hasPKCE ? Secret("v") : nil, tokenEndpoint: "https://idp.example.com/token"))
    }

    private static let callback = "http://127.0.0.1:8081/callback"
    private static let long = String(repeating: "x", count: 5000)

    @Test(arguments: [
        ("\(callback)?code=C&state=STATE", "\(callback)?code=C&state=STATE"),
        ("  \"\(callback)?code=C&state=STATE\"\n", "\(callback)?code=C&state=STATE"),
        ("“\(callback)?code=C&state=STATE”", "\(callback)?code=C&state=STATE"),
        ("<\(callback)?code=C&state=STATE>", "\(callback)?code=C&state=STATE"),
        ("Location: \(callback)?code=C&state=STATE\r\n", "\(callback)?code=C&state=STATE"),
        ("http://127.0.0.1:80\n81/callback?code=\n  C&state=ST\r\nATE\n", "\(callback)?code=C&state=STATE"),
        ("\(callback)?code=C&amp;state=STATE", "\(callback)?code=C&state=STATE"),
        ("127.0.0.1:8081/callback?code=C&state=STATE", "\(callback)?code=C&state=STATE"),
        ("\u{200B}\(callback)?code=C&state=STATE\u{200B}", "\(callback)?code=C&state=STATE"),
        ("not this\n\(callback)?code=C&state=STATE", "\(callback)?code=C&state=STATE"),
        ("\(callback)?code=C&state=OLD \(callback)?code=C&state=STATE", "\(callback)?code=C&state=STATE"),
        ("?code=C&state=STATE", "\(callback)?code=C&state=STATE"),
        ("code=C&state=STATE", "\(callback)?code=C&state=STATE"),
        ("\(callback)?code=\(long)&state=STATE", "\(callback)?code=\(long)&state=STATE"),
        ("4/0AX+4w=", "\(callback)?code=4%2F0AX%2B4w%3D&state=STATE"),
        ("code=4%2F0", "\(callback)?code=4%2F0&state=STATE"),
    ])
    func `a pasted answer is found in quotes, in several lines, without its scheme, as a query and as a code`(
        text: String, address: String
    ) throws {
        let attempt = Self.attempt(Self.callback)
        #expect(attempt.address(inPasted: text) == address)
        try attempt.check(attempt.address(inPasted: text))
    }

    @Test func `a pasted answer keeps the redirect address's own scheme, query and fragment`() throws {
        let app = Self.attempt("com.example.app:/oauth")
        try app.check(app.address(inPasted: "'com.example.app:/oauth?code=C&state=STATE'"))
        let query = Self.attempt("https://proxy.example.com/cb?tenant=a%2Fb")
        try query.check(query.address(inPasted: "code=C&state=STATE"))
        try query.check(query.address(inPasted: "proxy.example.com/cb?tenant=a%2Fb&code=C&state=STATE"))
        let implicit = Self.attempt(Self.callback, .implicit, hasPKCE: false)
        #expect(
            implicit.address(inPasted: "access_token=T&state=STATE") == "\(Self.callback)#access_token=T&state=STATE")
    }

    @Test(arguments: [
        "", "https://idp.example.com/authorize?state=STATE", "\(callback)?code=C&state=OTHER", "\(callback)",
        "?code=C&state=OTHER", "\(callback)?state=STATE&code=C&code=D",
    ])
    func `a pasted answer of another login or page, or an unreadable one, is refused`(text: String) {
        let attempt = Self.attempt(Self.callback)
        #expect(throws: LoginError.self) { try attempt.check(attempt.address(inPasted: text)) }
    }

    @Test(arguments: ["CODE", "code=CODE"])
    func `a pasted code alone is refused without PKCE, because nothing ties it to this login`(text: String) {
        let attempt = Self.attempt(Self.callback, hasPKCE: false)
        #expect(throws: LoginError.foreignRedirect) { try attempt.check(attempt.address(inPasted: text)) }
    }
}
