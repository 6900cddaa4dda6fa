import TestSupport
import Testing

@Suite("an API refuses the token of a sign-in that had no refresh token", .timeLimit(.minutes(2)))
struct RefusedTokenTests {
    @Test func `a refused token's 401 passes, others go on, and status, event and log ask for a sign-in`() async throws
    {
        let refusing = try RecordingOrigin {
            try $0.respond(401, fields: [("WWW-Authenticate", #"Bearer error="invalid_token""#)], body: "mine")
        }
        let endpoint = try TokenEndpoint([.token(accessToken)])
        let admin = try await AdministeredProxy(
            endpoint,
            client: """
                grant_type: authorization_code
                authorization_endpoint: http://127.0.0.1:1/authorize
                """,
            more: "  - {host: refusing.test, url: \"\(refusing.url)\", client: api, allow_plaintext: true}")
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 200)
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        #expect(try await admin.state() == "ready")

        for _ in 0..<3 {
            let refused = try await admin.proxy.get("http://refusing.test/")
            #expect(refused.status == 401)
            #expect(refused.text == "mine")
        }
        #expect(try await admin.state() == "needs_authentication")
        try await eventually("why it was not sent again") {
            admin.proxy.log.ranges(of: "not_replayed=sign-in").count == 3
        }
        let url = "http://127.0.0.1:\(admin.adminPort)/login/api"
        let status = try await admin.get("/status").text
        #expect(status.contains("an API refused the token (invalid_token)"))
        #expect(status.contains("\"login_url\": \"\(url)\""))
        let words = try await admin.run("status")
        #expect(words.output.contains("needs a sign-in"))
        #expect(words.output.contains("because an API refused the token"))
        #expect(words.ending == .exited(3))
        #expect(try await browser.get("/").text.contains("An API refuses the token."))
        let proxy = admin.proxy
        _ = try await eventually("the log") {
            proxy.log.contains("somebody has to sign in") && proxy.log.contains("login_url=\(url)") ? true : nil
        }
        let lines = proxy.log.split(separator: "\n").filter { $0.contains("somebody has to sign in") }
        // The first was before any login.
        #expect(lines.filter { $0.contains("an API refused the token") }.count == 1)
        // Nobody else's request fails over it.
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        #expect(endpoint.requests.count == 1)
        // Its prediction is that of the program's requests.
        #expect(try await admin.run("why", "GET", "http://api.test/").output.contains("an error of the proxy") == false)
    }
}
