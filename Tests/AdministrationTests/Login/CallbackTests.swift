import Foundation
import TestSupport
import Testing

/// Whatever a browser may bring to the redirect URI.
@Suite("what comes to the redirect URI gets a page, and a line in the log with its cause", .timeLimit(.minutes(2)))
struct CallbackTests {
    private func logged(_ reason: String, by admin: AdministeredProxy) async throws {
        let proxy = admin.proxy
        try await eventually("\(reason) in \(proxy.log)") {
            proxy.log.split(separator: "\n").contains { $0.contains("an answer to a sign-in") && $0.contains(reason) }
        }
    }

    @Test(arguments: [
        ("cancel%u00f3+%u20ac", "canceló €"), ("cancel%F3", "canceló"), ("100%25+or+100%", "100% or 100%"),
        ("%zz%u12%4", "%zz%u12%4"), ("%ud83d%ude00", "😀"), ("%C3%B3", "ó"),
    ])
    func `a refused sign-in is told, whatever the encoding of its description`(description: String, shown: String)
        async throws
    {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        let answer = try await browser.get(
            "/callback?error=access_denied&error_description=\(description)&error_uri=%25&state=\(state)",
            Browser.foreign)
        #expect(answer.status == 400)
        #expect(answer.text.contains("The sign-in was refused (access_denied: \(shown)"), "\(answer.text)")
        let without = try await browser.get(
            "/callback?error=access_denied&error_description=\(description)", Browser.foreign)
        #expect(without.text.contains("access_denied: \(shown)"))
    }

    @Test func `an answer after a restart, without cookies, or without a sign-in says why nothing was done`()
        async throws
    {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        // The sign-in of another life of the proxy: its cookie is still there.
        let restarted = try await browser.get("/callback?code=x&state=another", Browser.foreign)
        #expect(restarted.text.contains("the proxy has restarted since it began"))
        try await logged("the proxy has restarted", by: admin)
        var other = Browser(admin)
        let late = try await other.get("/callback?code=x&state=another", Browser.foreign)
        #expect(late.text.contains("took longer than ten minutes"))
        try await logged("took longer than ten minutes", by: admin)
        let cookieless = try await other.get("/callback?code=x&state=\(state)", Browser.foreign)
        #expect(cookieless.text.contains("allow cookies for this address"))
        let proxy = admin.proxy
        try await eventually("a line of the client") { proxy.log.contains("the answer came from another browser") }
        let stateless = try await other.get("/callback?code=x", Browser.foreign)
        #expect(stateless.status == 400)
        try await logged("it has no state", by: admin)
        // The word of a late refusal is shown, but no text that anybody might have written.
        let refused = try await other.get(
            "/callback?error=access_denied&error_description=call+me&state=another", Browser.foreign)
        #expect(refused.text.contains("The answer was a refusal: access_denied."))
        #expect(!refused.text.contains("call me"))
        let invented = try await other.get("/callback?error=call_me&state=another", Browser.foreign)
        #expect(!invented.text.contains("call_me"))
        for answer in [restarted, late, cookieless, stateless, refused, invented] {
            #expect(answer.status == 400 && answer.text.contains("Nothing was stored"))
        }
        // A page in another browser can't fill the log.
        for _ in 0..<30 { _ = try await other.get("/callback?code=x&state=another", Browser.foreign) }
        #expect(admin.proxy.log.split(separator: "\n").count { $0.contains("an answer to a sign-in was") } <= 10)
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 200)
    }

    @Test func `a form that the server's page sends is explained, and nothing of it is taken`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        for fields in [Browser.foreign + [("Origin", "https://idp.example")], [("Origin", "null")], Browser.own] {
            let answer = try await browser.send("POST", "/callback", fields, body: "code=x&state=\(state)")
            #expect(answer.status == 400)
            #expect(answer.text.contains("response_mode"))
        }
        try await logged("form_post", by: admin)
        #expect(admin.tokenEndpoint.requests.isEmpty)
        let rebound = try await admin.send(
            "POST", "/callback", [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "0")],
            host: "rebound.example")
        #expect(rebound.status == 403)
        let empty = try await browser.send("POST", "/callback", body: "", type: "text/plain")
        #expect(empty.text.contains("answer is empty"))
        try await logged("it is empty", by: admin)
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 200)
    }

    @Test func `of an answer that comes twice at once, both requests get the outcome of the one exchange`() async throws
    {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, number in
            gate.wait()
            return number == 0
                ? .token(accessToken, refreshToken: refreshToken) : .json(#"{"error":"invalid_grant"}"#, status: 400)
        }
        let admin = try await AdministeredProxy.signedInAtABrowser(endpoint)
        for status in [200, 400] {
            var browser = Browser(admin)
            let state = try #require(try await browser.begin()["state"])
            let known = browser
            let answers = (0..<3).map { _ in
                Task {
                    var tab = known
                    return try await tab.get("/callback?code=x&state=\(state)", Browser.foreign)
                }
            }
            _ = try await endpoint.requests(status == 200 ? 1 : 2)
            // Another browser does not wait for the outcome.
            var other = Browser(admin)
            #expect(try await other.get("/callback?code=x&state=\(state)", Browser.foreign).status == 400)
            gate.open()
            for answer in answers {
                let text = try await answer.value.text
                // A request that comes after the outcome of a failure finds no sign-in.
                let isTold = status == 200 ? text.contains("Signed in") : text.contains("invalid_grant")
                #expect(isTold || status != 200 && text.contains("is unknown"), "\(text)")
            }
        }
        #expect(endpoint.requests.count == 2)
    }
}
