import Foundation
import TestSupport
import Testing

@Suite("signing in at a browser, and attacks on it", .timeLimit(.minutes(2)))
struct LoginTests {
    @Test func `a login goes out with PKCE and a one-time state, comes back once, and shows nothing of itself`()
        async throws
    {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let out = try await browser.get("/login/api")
        #expect(out.status == 303)
        let sent = Browser.parameters(out.field("Location") ?? "")
        #expect(out.field("Location")?.hasPrefix("http://127.0.0.1:1/authorize?") == true)
        #expect(sent["response_type"] == "code")
        #expect(sent["code_challenge_method"] == "S256")
        #expect(sent["redirect_uri"] == "http://127.0.0.1:\(admin.adminPort)/callback")
        let state = try #require(sent["state"])
        #expect(state.count >= 22)
        let cookie = out.field("Set-Cookie") ?? ""
        for word in ["HttpOnly", "SameSite=Lax", "Path=/callback", "Max-Age=600"] { #expect(cookie.contains(word)) }
        #expect(!cookie.contains(state))

        // The server sends the browser back, from its own site.
        let back = "/callback?code=THE-CODE&state=\(state)"
        let done = try await browser.get(back, Browser.foreign)
        #expect(done.status == 200)
        #expect(done.text.contains("Signed in"))
        for secret in ["THE-CODE", state, "SEKRET"] { #expect(!done.text.contains(secret)) }
        #expect(try await admin.state() == "ready")
        let asked = try #require(admin.tokenEndpoint.requests.first)
        #expect(asked["grant_type"] == "authorization_code")
        #expect(asked["code"] == "THE-CODE")
        #expect((asked["code_verifier"] ?? "").count >= 43)

        let again = try await browser.get(back, Browser.foreign)
        #expect(again.status == 400)
        #expect(again.text.contains("in before"))
        #expect(admin.tokenEndpoint.requests.count == 1)
        #expect(!admin.proxy.log.contains("THE-CODE"))
        #expect(!admin.proxy.log.contains(state))
    }

    @Test func `a wrong, missing or foreign state stores nothing and sends nothing`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        for query in [
            "?code=x", "?code=x&state=", "?code=x&state=wrong", "?code=x&state=\(state)x",
            "?state=wrong&error=access_denied",
            "?code=x&state=wrong&state=\(state)", "?code=x&State=\(state)",
        ] {
            let answer = try await browser.get("/callback\(query)", Browser.foreign)
            #expect(answer.status == 400, "\(query)")
            #expect(answer.text.contains("Nothing was stored"))
        }
        // Another browser: no cookie, and one that is made up.
        var other = Browser(admin)
        let foreign = try await other.get("/callback?code=x&state=\(state)", Browser.foreign)
        #expect(foreign.status == 400)
        #expect(foreign.text.contains("another browser"))
        for name in browser.cookies.keys { other.cookies[name] = "AAAAAAAAAAAAAAAAAAAAAA" }
        #expect(try await other.get("/callback?code=x&state=\(state)", Browser.foreign).status == 400)
        #expect(admin.tokenEndpoint.requests.isEmpty)
        #expect(try await admin.state() == "needs_authentication")
        // Logged once for any number of attempts.
        let proxy = admin.proxy
        _ = try await eventually("the log") { proxy.log.contains("another browser") ? true : nil }
        #expect(proxy.log.split(separator: "\n").filter { $0.contains("another browser") }.count == 1)
        // The login is as it was, for the browser that began it.
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 200)
    }

    @Test(arguments: [
        ("state", "code=x&state=STATE&state=STATE"), ("state", "state=wrong&code=x&state=STATE"),
        ("state", "code=x&state=STATE&st%61te=other"), ("code", "code=x&code=y&state=STATE"),
        ("error", "error=access_denied&error=x&state=STATE"),
    ])
    func `a parameter of ours that comes twice is named, and the login is as it was`(name: String, query: String)
        async throws
    {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        let answer = try await browser.get("/callback?" + query.replacing("STATE", with: state), Browser.foreign)
        #expect(answer.status == 400)
        #expect(answer.text.contains("the parameter “\(name)” twice"))
        #expect(answer.text.contains("Nothing was stored"))
        #expect(!answer.text.contains(state))
        #expect(admin.tokenEndpoint.requests.isEmpty)
        let proxy = admin.proxy
        _ = try await eventually("the log") {
            proxy.log.contains("the parameter \(name) is repeated") ? true : nil
        }
        // What is not ours may repeat.
        let back = "/callback?code=x&scope=a&scope=b&state=\(state)"
        #expect(try await browser.get(back, Browser.foreign).status == 200)
    }

    @Test func `a denial without a state shows the server's words, and the login is as it was`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        let words = "%3Cb%3Eno%3C%2Fb%3E%1B+\(clientSecret)+" + String(repeating: "y", count: 2000)
        let denied = try await browser.get(
            "/callback?error=access_denied&error_description=\(words)", Browser.foreign)
        #expect(denied.status == 400)
        #expect(denied.text.contains("access_denied: &lt;b&gt;no&lt;/b&gt;? &lt;redacted&gt;"))
        #expect(!denied.text.contains(String(repeating: "y", count: 257)))
        #expect(denied.text.contains("Nothing was stored"))
        let proxy = admin.proxy
        _ = try await eventually("the log") { proxy.log.contains("access_denied") ? true : nil }
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 200)
        // Of nobody's login: a line of the log, a few times a minute at most.
        var stranger = Browser(admin)
        for _ in 0..<30 { _ = try await stranger.get("/callback?error=server_error", Browser.foreign) }
        let lines = proxy.log.split(separator: "\n").filter { $0.contains("server_error") }.count
        #expect((1...10).contains(lines))
    }

    @Test func `scopes that the server did not grant are told after the sign-in`() async throws {
        let endpoint = try TokenEndpoint([
            .json(#"{"access_token":"\#(accessToken)","token_type":"Bearer","expires_in":3600,"scope":"read"}"#)
        ])
        let admin = try await AdministeredProxy.signedInAtABrowser(endpoint, more: "scope: [read, write]")
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        let done = try await browser.get("/callback?code=x&state=\(state)", Browser.foreign)
        #expect(done.status == 200)
        #expect(done.text.contains(/no refresh token: signed in until ([0-9-]+ )?[0-9]{2}:[0-9]{2} UTC/))
        #expect(done.text.contains("did not grant the scope write."))
        #expect(!done.text.contains("keeps it fresh"))
        #expect(!done.text.contains("http-equiv=\"refresh\" content=\"3"), "the page stays to be read")
        let overview = try await browser.get("/").text
        #expect(overview.contains("signed in until "))
        #expect(overview.contains("not granted: write"))
        #expect(try await admin.get("/status").text.contains(/"scope_not_granted": \[\s*"write"/))

        let whole = try await AdministeredProxy.signedInAtABrowser()
        browser = Browser(whole)
        let second = try #require(try await browser.begin()["state"])
        let good = try await browser.get("/callback?code=x&state=\(second)", Browser.foreign)
        #expect(good.text.contains("keeps it fresh"))
        #expect(!good.text.contains("grant"))
    }

    @Test func `two logins in one browser don't take each other's place`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let first = try #require(try await browser.begin()["state"])
        let second = try #require(try await browser.begin()["state"])
        #expect(first != second)
        #expect(try await browser.get("/callback?code=a&state=\(first)", Browser.foreign).status == 200)
    }

    @Test func `what the server says in an error is text, printable, short, and never believed without a state`()
        async throws
    {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        let script = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%CC%81%20onload%3Dx"
        let long = String(repeating: "y", count: 2000)
        let forged = try await browser.get(
            "/callback?error=access_denied&error_description=\(script)&state=wrong", Browser.foreign)
        #expect(forged.status == 400)
        #expect(!forged.text.contains("alert"))
        let refused = try await browser.get(
            "/callback?error=access_denied&error_description=\(script)\(long)&state=\(state)", Browser.foreign)
        #expect(refused.status == 400)
        #expect(refused.text.contains("The sign-in was refused"))
        #expect(!refused.text.contains("<script>alert"))
        let accented = "\"\u{301}"
        #expect(!refused.text.contains(accented))
        #expect(!refused.text.contains(String(repeating: "y", count: 257)))
        #expect(try await admin.state() == "needs_authentication")
        for name in ["invalid_scope", "server_error", "%3Cb%3E", "unauthorized_client"] {
            let state = try #require(try await browser.begin()["state"])
            let answer = try await browser.get("/callback?error=\(name)&state=\(state)", Browser.foreign)
            #expect((400..<500).contains(answer.status))
            #expect(!answer.text.contains("<b>"))
            #expect(answer.text.contains("/login/api"))
        }
        #expect(admin.tokenEndpoint.requests.isEmpty)
    }

    @Test func `another name of this host leads to the redirect URI's own origin first, by a pass that is good once`()
        async throws
    {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        browser.host = "localhost:\(admin.adminPort)"
        let moved = try await browser.get("/login/api")
        #expect(moved.status == 303)
        let location = try #require(moved.field("Location"))
        #expect(location.hasPrefix("http://127.0.0.1:\(admin.adminPort)/login/api?pass="))
        #expect(moved.field("Set-Cookie") == nil)
        let target = String(location.dropFirst("http://127.0.0.1:\(admin.adminPort)".count))
        var there = Browser(admin)
        // A browser calls 127.0.0.1 another site than localhost.
        #expect(try await there.begin(target, Browser.foreign)["state"] != nil)
        let again = try await there.get(target, Browser.foreign)
        #expect(again.status == 200)
        #expect(again.text.contains("Go on"))
        // Somebody in front who changes Host must not make a circle.
        let circle = try await browser.get(target)
        #expect(circle.status == 400)
        #expect(circle.text.contains("redirect_uri"))
    }

    @Test func `a link of another site begins nothing, and asks first`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let asked = try await browser.get("/login/api", Browser.foreign)
        #expect(asked.status == 200)
        #expect(asked.text.contains("Sign in “api”?"))
        #expect(asked.field("Set-Cookie") == nil)
        for (mode, destination) in [
            ("navigate", "iframe"), ("cors", "empty"), ("no-cors", "image"), ("navigate", "object"),
        ] {
            for path in ["/", "/login/api", "/status", "/fragment"] {
                let answer = try await browser.get(
                    path,
                    [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", destination)])
                #expect(answer.status == 403, "\(path) \(mode) \(destination)")
            }
        }
        #expect(try await browser.get("/", Browser.foreign).status == 200)
        for path in ["/status", "/events", "/fragment"] {
            #expect(try await browser.get(path, Browser.foreign).status == 403)
        }
    }

    @Test func `a rebound name gets no page and begins no login`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        browser.host = "rebound.example:\(admin.adminPort)"
        for path in ["/", "/login/api", "/callback?code=x&state=\(state)", "/fragment", "/page.js", "/page.css"] {
            for fields in [Browser.own, Browser.foreign, []] {
                #expect(try await browser.get(path, fields).status == 403, "\(path)")
            }
        }
        for path in ["/logout/api", "/refresh/api", "/enter", "/callback"] {
            #expect(try await browser.send("POST", path, body: "csrf=x").status == 403)
        }
        #expect(try await browser.get("/livez", []).status == 200)
        #expect(admin.tokenEndpoint.requests.isEmpty)
        browser.host = "127.0.0.1:\(admin.adminPort)"
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 200)
    }

    @Test func `an answer behind # is handed over by our own page's script only`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser(grant: "implicit", more: "allow_deprecated: true")
        var browser = Browser(admin)
        let sent = try await browser.begin()
        #expect(sent["response_type"] == "token")
        let state = try #require(sent["state"])
        // Whatever stands in the query beside it.
        for query in ["", "?session_state=1&session_state=2", "?state=\(state)", "?code=x&state=\(state)"] {
            let page = try await browser.get("/callback" + query, Browser.foreign)
            #expect(page.status == 200)
            #expect(page.text.contains("data-fragment"), "\(query)")
        }
        let fragment = "access_token=\(accessToken)&token_type=bearer&expires_in=7199&username=guest&state=\(state)"
        for fields in [
            Browser.foreign, [("Origin", "http://evil.example")], [("Origin", "null")],
            [("Sec-Fetch-Site", "same-site")],
        ] {
            #expect(
                try await browser.send("POST", "/callback", fields, body: fragment, type: "text/plain").status == 403)
        }
        let done = try await browser.send("POST", "/callback?session_state=1", body: fragment, type: "text/plain")
        #expect(done.status == 200)
        #expect(!done.text.contains("SEKRET"))
        #expect(try await admin.state() == "ready")
        #expect(try await browser.send("POST", "/callback", body: fragment, type: "text/plain").status == 400)
    }

    @Test func `a client that can't be signed in at the page gets what can be done`() async throws {
        let unattended = try await AdministeredProxy()
        var browser = Browser(unattended)
        #expect(try await browser.get("/login/api").text.contains("without a sign-in"))
        #expect(try await browser.get("/login/nobody").status == 404)
        #expect(try await browser.get("/login/%3Cscript%3E").text.contains("<script>") == false)
        let elsewhere = try await AdministeredProxy.signedInAtABrowser(more: "redirect_uri: com.example.app:/oauth")
        browser = Browser(elsewhere)
        let answer = try await browser.get("/login/api")
        #expect(answer.status == 400)
        #expect(answer.text.contains("heimdallr-proxy login api --paste"))
    }

    @Test func `a redirect URI with a path of its own is answered there`() async throws {
        // The port is not known before the proxy runs, so it is one in front that stands for it: any loopback port is ours.
        let admin = try await AdministeredProxy.signedInAtABrowser(
            more: "redirect_uri: http://localhost:1/oauth2/back")
        var browser = Browser(admin)
        browser.host = "localhost:1"
        let sent = try await browser.begin()
        #expect(sent["redirect_uri"] == "http://localhost:1/oauth2/back")
        let state = try #require(sent["state"])
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 400)
        let again = try #require(try await browser.begin()["state"])
        #expect(try await browser.get("/oauth2/back?code=x&state=\(again)", Browser.foreign).status == 200)
    }
}
