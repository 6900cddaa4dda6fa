import Foundation

import TestSupport
import Testing

@testable import Administration
@testable import Heimdallr

@Suite("the page and its buttons", .timeLimit(.minutes(2)))
struct PageTests {
    @Test func `it says how each client and upstream is, and works without a script`() async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        _ = try await admin.proxy.get("http://api.test/")
        var browser = Browser(admin)
        let page = try await browser.get("/").text
        for text in [
            "api", "Ready", "api.test", "<caption", "scope=\"col\"", "scope=\"row\"", "aria-live", "lang=\"en\"",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        #expect(page.contains("<svg role=\"img\""))
        #expect(page.contains("action=\"/refresh/api\""))
        #expect(!page.contains("SEKRET"))
        // Nothing inline, and nothing from elsewhere: the policy would not allow it.
        for pattern in ["<script>", "<style", " style=", " onclick", "javascript:", "http://", "https://"] {
            #expect(!page.contains(pattern), "\(pattern)")
        }
        let fragment = try await browser.get("/fragment").text
        #expect(page.contains("id=\"clients-title\"") && fragment.contains("id=\"clients-title\""))
        #expect(!fragment.contains("<html"))
    }

    @Test func `every page is framed by nobody, kept by nobody, and loads only our own`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser(admin: "token: {file: FOLDER/admin-token}")
        var browser = Browser(admin)
        for path in [
            "/", "/login/api", "/callback?code=x&state=y", "/callback", "/login/api/x", "/nothing", "/page.css",
        ] {
            let answer = try await browser.get(path)
            let policy = answer.field("Content-Security-Policy") ?? ""
            #expect(policy.hasPrefix("default-src 'none'"), "\(path)")
            #expect(policy.contains("frame-ancestors 'none'"))
            #expect(!policy.contains("unsafe") && !policy.contains("*") && !policy.contains("http"))
            #expect(answer.field("X-Frame-Options") == "DENY")
            #expect(answer.field("Cache-Control") == "no-store")
            #expect(answer.field("X-Content-Type-Options") == "nosniff")
            #expect(["no-referrer", "same-origin"].contains(answer.field("Referrer-Policy")))
            #expect(answer.field("Access-Control-Allow-Origin") == nil)
            #expect(answer.field("Server") == nil)
        }
    }

    @Test func `a button works for our own page, and for nobody else's`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        _ = try await browser.get("/callback?code=x&state=\(state)", Browser.foreign)
        try await admin.ready()
        let token = try #require(try await browser.get("/").text.firstMatch(of: /name="csrf" value="([^"]+)"/)?.1)
        for target in ["/logout/api", "/refresh/api"] {
            for body in [nil, "", "csrf=", "csrf=x", "csrf=\(token)x", "x=\(token)", "csrf=\(token)&csrf=\(token)"] {
                #expect(try await browser.send("POST", target, body: body).status == 403, "\(target) \(body ?? "")")
            }
            for fields in [
                [("Origin", "http://evil.example")], [("Origin", "null")], Browser.foreign,
                [("Sec-Fetch-Site", "same-site")],
            ] {
                #expect(try await browser.send("POST", target, fields, body: "csrf=\(token)").status == 403)
            }
            #expect(
                try await browser.send("POST", target, body: "csrf=\(token)", type: "text/plain").status == 403)
            #expect(try await browser.get(target).status == 404)
            // A token goes with its cookie.
            var other = Browser(admin)
            #expect(try await other.send("POST", target, body: "csrf=\(token)").status == 403)
            _ = try await other.get("/")
            #expect(try await other.send("POST", target, body: "csrf=\(token)").status == 403)
        }
        #expect(try await admin.state() == "ready")
        #expect(try await browser.press("/logout/nobody").status == 404)
        let out = try await browser.press("/logout/api")
        // There is no revocation_endpoint here, and the page says so.
        #expect(out.text.contains("revocation_endpoint"))
        #expect(try await browser.press("/refresh/api").status == 200)
        let plain = try await browser.press("/refresh/api", Browser.own + [("Accept", "text/plain")])
        #expect(plain.field("Content-Type") == "text/plain; charset=utf-8")
    }

    @Test func `admin.token is asked for once, in a form`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser(admin: "token: {file: FOLDER/admin-token}")
        var browser = Browser(admin)
        for path in ["/", "/login/api"] {
            let asked = try await browser.get(path)
            #expect(asked.status == 401)
            #expect(asked.text.contains("<form method=\"post\" action=\"/enter\""))
            #expect(!asked.text.contains("/authorize"))
        }
        for path in ["/fragment", "/status", "/events"] { #expect(try await browser.get(path).status == 401) }
        for path in ["/logout/api", "/refresh/api"] {
            #expect(try await browser.send("POST", path, body: "csrf=x").status == 401)
        }
        let form = try await browser.get("/login/api").text
        let token = try #require(form.firstMatch(of: /name="csrf" value="([^"]+)"/)?.1)
        #expect(form.contains("name=\"next\" value=\"/login/api\""))
        func enter(_ value: String, next: String = "/", csrf: String? = nil) async throws -> RawResponse {
            try await browser.send("POST", "/enter", body: "csrf=\(csrf ?? String(token))&next=\(next)&token=\(value)")
        }
        #expect(try await enter(adminToken, csrf: "x").status == 403)
        #expect(try await enter("wrong").status == 403)
        let cookiesBefore = browser.cookies
        let welcome = try await enter(adminToken, next: "//evil.example/")
        #expect(welcome.status == 303)
        #expect(welcome.field("Location") == "/")
        let cookie = try #require(welcome.field("Set-Cookie"))
        for word in ["HttpOnly", "SameSite=Strict", "Path=/"] { #expect(cookie.contains(word)) }
        #expect(!cookie.contains(adminToken))
        #expect(try await browser.get("/").status == 200)
        #expect(try await browser.get("/status").status == 200)
        // The browser comes back from the server without the session's cookie, and is known by the attempt's.
        let state = try #require(try await browser.begin()["state"])
        let session = browser.cookies
        browser.cookies = browser.cookies.filter { $0.key.hasPrefix("heimdallr-login-") }
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 200)
        // A token that is changed ends what the old one opened.
        browser.cookies = session
        try admin.proxy.directory.write("another", to: "admin-token")
        #expect(try await browser.get("/").status == 401)
        // Guessing is slow.
        browser.cookies = cookiesBefore
        var statuses: [Int] = []
        for _ in 0..<12 { statuses.append(try await enter("wrong").status) }
        #expect(statuses.last == 429)
        #expect(try await enter("another").status == 429)
        #expect(!admin.proxy.log.contains("wrong\n"))
    }

    // MARK: Parts

    @Test func `every template can be read`() {
        #expect(PageMarkup.missing == [])
        for template in PageMarkup.Template.allCases { #expect(PageMarkup.render(template, [:]) != "") }
    }

    @Test(arguments: [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "'\u{301} onload='x", "\"\u{301} onload=\"x",
        "<\u{338}b>", "a\u{202E}b\u{0}c\u{1B}[31m", "{{csrf}}", "&lt;",
    ])
    func `whatever a name or an error says, it is text`(text: String) {
        let error = HeimdallrError.clientRefused(
            .refused(OAuthError(status: 400, code: .invalidClient, detail: text, uri: nil)), retryAfter: .zero)
        let status = HeimdallrStatus(
            client: text, grantType: text, loginMethod: .browser, signedInAs: text, scope: [text], state: .backingOff,
            expiresIn: nil, hasRefreshToken: true, refreshTokenExpiresIn: nil, sinceLastSuccess: nil, lastError: error,
            sinceLastError: .zero, nextAttemptIn: .zero, waiters: 0, storeFault: text, hasSettled: true)
        let page = StatusPage(
            version: "0", uptime: .zero, isDraining: false,
            clients: [
                Readiness.Client(
                    status: status, isUnattended: false,
                    signIn: SignIn(client: text, method: .browser, url: nil))
            ],
            traffic: TrafficReport(
                upstreams: [TrafficReport.Upstream(name: text, client: text, durations: Histogram(bounds: [1]))],
                inFlight: 0))
        let html = PageMarkup.render(.page, OverviewModel(status: page, formToken: "t").values)
        #expect(html.contains("</html>"))
        let words = html.unicodeScalars
        #expect(!words.contains("\u{202E}") && !words.contains("\u{1B}") && !words.contains("\u{0}"))
        // Our own markup has neither: what is there came from outside.
        for pattern in ["<script>", "<img", "<b>", "\"\u{301}", "'\u{301}"] {
            #expect(!html.utf8.contains(Array(pattern.utf8)), "\(pattern)")
        }
        #expect(PageText.escaped(text).unicodeScalars.allSatisfy { !"<>\"'".unicodeScalars.contains($0) })
    }

    @Test func `a next page is one of ours`() {
        for path in ["/", "/login/api?ticket=x", "/login/a.b"] { #expect(TokenGate.ownPath(path) == path) }
        for path in [nil, "", "//evil", "/\\evil", "http://evil", "/a b", "/\u{7F}", "evil", "/é"] {
            #expect(TokenGate.ownPath(path) == "/")
        }
    }

    @Test func `a chart shows where most of the time goes`() throws {
        var histogram = Histogram(bounds: [0.01, 0.1, 1])
        #expect(LatencyChart(histogram) == nil)
        for _ in 0..<90 { histogram.record(.milliseconds(5)) }
        for _ in 0..<10 { histogram.record(.seconds(2)) }
        let chart = try #require(LatencyChart(histogram))
        #expect(chart.bars.map(\.count) == [90, 0, 0, 10])
        #expect(chart.bars[0].height == LatencyChart.height)
        #expect(chart.bars[1].height == 2)
        #expect(chart.bars[3].isSlow && !chart.bars[0].isSlow)
        #expect(chart.median > 0.005 && chart.median < 0.006)
        #expect(chart.summary == "half in 5.6 ms, 95 % in 1 s")
        #expect(LatencyChart.text(seconds: 0.25) == "250 ms")
    }

    @Test func `a form's token is good for its cookie and its process alone`() throws {
        let forms = try FormTokens()
        let cookie = try FormTokens.newCookie()
        let token = try #require(forms.token(for: cookie))
        #expect(forms.accepts(token, for: cookie))
        #expect(!forms.accepts(token, for: try FormTokens.newCookie()))
        #expect(!(try FormTokens()).accepts(token, for: cookie))
        #expect(!forms.accepts(nil, for: cookie))
        #expect(!forms.accepts(token, for: nil))
        for cookie in ["", "x", "a;b", String(repeating: "a", count: 23)] {
            #expect(!forms.accepts(forms.token(for: cookie), for: cookie))
        }
    }

    @Test func `a session ends in time, and with its token`() {
        let sessions = AdminSessions()
        let now = ContinuousClock.now
        let secret = Secret("right")
        guard case .welcome(let id) = sessions.enter(Secret("right"), expected: secret, now: now) else {
            Issue.record("not let in")
            return
        }
        #expect(sessions.isKnown(id, expected: secret, now: now + .seconds(3600)))
        #expect(!sessions.isKnown(id, expected: Secret("new"), now: now))
        #expect(!sessions.isKnown(id, expected: secret, now: now + AdminSessions.lifetime))
        #expect(!sessions.isKnown(nil, expected: secret, now: now))
        #expect(!sessions.isKnown("x", expected: secret, now: now))
        for _ in 0..<AdminSessions.patience {
            #expect(sessions.enter(Secret("no"), expected: secret, now: now) == .wrong)
        }
        #expect(sessions.enter(secret, expected: secret, now: now) == .tooMany)
        guard case .welcome = sessions.enter(secret, expected: secret, now: now + .seconds(61)) else {
            Issue.record("a minute later it is still shut")
            return
        }
        #expect(AdminSessions().enter(Secret(""), expected: Secret(""), now: now) == .wrong)
    }
}

extension Sequence where Element == UInt8 {
    fileprivate func contains(_ bytes: [UInt8]) -> Bool {
        let all = Array(self)
        guard all.count >= bytes.count else { return false }
        return (0...all.count - bytes.count).contains { all[$0..<$0 + bytes.count].elementsEqual(bytes) }
    }
}
