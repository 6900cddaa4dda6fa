import Cryptography
import Foundation
import HTML
import Reports
import TestSupport
import Testing

@testable import Administration
@testable import Heimdallr

@Suite("the page and its buttons", .timeLimit(.minutes(2)))
struct PageTests {
    @Test func `the page says how each client and upstream is, and works without a script`() async throws {
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
        for pattern in ["<script>", "<style", " style=", " onclick", "javascript:"] {
            #expect(!page.contains(pattern), "\(pattern)")
        }
        for match in page.matches(of: /(?:src|href|action)="([^"]*)"/) {
            #expect(match.1.hasPrefix("/") && !match.1.hasPrefix("//") || match.1.hasPrefix("#"), "\(match.0)")
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
        try admin.proxy.directory.write("another-long-enough-token", to: "admin-token")
        #expect(try await browser.get("/").status == 401)
        // Guessing is slow.
        browser.cookies = cookiesBefore
        var statuses: [Int] = []
        for _ in 0..<12 { statuses.append(try await enter("wrong").status) }
        #expect(statuses.last == 429)
        #expect(try await enter("another-long-enough-token").status == 429)
        #expect(!admin.proxy.log.contains("wrong\n"))
    }

    @Test func `the page says where tokens and requests come from and go to, how fast, and how to use each upstream`()
        async throws
    {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: """
                  - {host: "*.wild.test", paths: [/v1/], methods: [POST]}
                  - {host: own.test, listen: "127.0.0.1:0", url: "https://own.example.com/x"}
                """)
        try await admin.ready()
        for _ in 0..<3 { _ = try await admin.proxy.get("http://api.test/") }
        var browser = Browser(admin)
        let page = try await browser.get("/").text
        let port = admin.proxy.port
        for text in [
            "<span class=\"minor url\">\(admin.tokenEndpoint.url.prefix { $0 != "?" })</span>",
            "→ \(admin.origin.url)</span>", "→ https://own.example.com/x</span>",
            "<code>curl -x http://127.0.0.1:\(port) http://api.test/</code>",
            "<code>curl -X POST -x http://127.0.0.1:\(port) http://any.wild.test/v1",
        ] { #expect(page.contains(text), "\(text)\n\(page)") }
        #expect(page.firstMatch(of: /<code>curl http:\/\/127\.0\.0\.1:[1-9][0-9]+\/<\/code>/) != nil)
        #expect(page.firstMatch(of: /p50 [0-9.]+ m?s · p95 [0-9.]+ m?s/) != nil)
        // The copied command works.
        let line = try #require(page.firstMatch(of: /<code>(curl -x [^<]+http:\/\/api.test\/)<\/code>/)?.1)
        let run = try await ChildProcess.run(
            ["sh", "-c", "\(line) -sS -o /dev/null -w %{http_code}"], environment: ["no_proxy": nil])
        #expect(run.output == "200", "\(run.transcript)")
        #expect(try await admin.get("/status").text.contains("\"token_endpoint\": \"\(admin.tokenEndpoint.url)"))
    }

    @Test func `a failed sign-out looks like one, and offers to forget the tokens here`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        _ = try await browser.get("/callback?code=x&state=\(state)", Browser.foreign)
        try await admin.ready()
        let failed = try await browser.press("/logout/api")
        #expect(failed.status == 502)
        #expect(failed.text.contains("<h1 class=\"bad\">Not signed out</h1>"))
        #expect(failed.text.contains("Forget here</button>"))
        #expect(failed.field("Referrer-Policy") == "same-origin")
        #expect(try await admin.state() == "ready")
        let token = try #require(failed.text.firstMatch(of: /name="csrf" value="([^"]+)"/)?.1)
        #expect(try await browser.send("POST", "/logout/api", body: "csrf=x&local=true").status == 403)
        let forgotten = try await browser.send("POST", "/logout/api", body: "csrf=\(token)&local=true")
        #expect(forgotten.status == 200)
        #expect(forgotten.text.contains("Forgotten here"))
        #expect(try await admin.state() == "needs_authentication")
    }

    @Test func `the page on which a sign-in ended may be loaded again, by the same browser`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).text.contains("Signed in"))
        // As our script leaves the address, and as it is without a script.
        let again = try await browser.get("/callback?done=\(state)")
        #expect(again.status == 200 && again.text.contains(">Signed in</h1>"), "\(again.text)")
        let whole = try await browser.get("/callback?code=x&state=\(state)", Browser.foreign)
        #expect(whole.status == 400 && whole.text.contains(">Signed in already</h1>"), "\(whole.text)")
        var other = Browser(admin)
        #expect(try await other.get("/callback?done=\(state)").status == 400)
        #expect(try await browser.get("/callback?done=\(state)x").status == 400)
        #expect(admin.tokenEndpoint.requests.count == 1)
    }

    // MARK: Parts

    @Test func `failures stand first, and in red; a sign-in that is wanted comes next`() {
        func client(_ name: String, _ state: HeimdallrStatus.State, failed: Bool = false) -> ReadinessAnswer.Client {
            let error = HeimdallrError.clientRefused(
                .refused(OAuthError(status: 400, code: .invalidClient, detail: "no", uri: nil)), retryAfter: .zero)
            let status = HeimdallrStatus(
                client: name, grantType: "x", loginMethod: nil, signedInAs: nil, scope: [], state: state,
                expiresIn: nil, hasRefreshToken: false, refreshTokenExpiresIn: nil, sinceLastSuccess: nil,
                lastError: failed ? error : nil, sinceLastError: .zero, nextAttemptIn: nil, waiters: 0, storeFault: nil,
                hasSettled: true)
            return ReadinessAnswer.Client(
                status: status, isUnattended: true, signIn: SignInWay(client: name, method: .browser, url: nil))
        }
        func upstream(_ name: String, code: Int) -> UpstreamTraffic {
            var upstream = UpstreamTraffic(name: name, client: nil, bounds: [1])
            upstream.requests[code] = 1
            return upstream
        }
        let page = StatusPage(
            version: "0", uptime: .zero, isDraining: false,
            clients: [
                client("well", .ready), client("wanted", .needsAuthentication), client("warned", .ready, failed: true),
                client("idle", .idle), client("broken", .backingOff, failed: true),
            ],
            traffic: TrafficReport(
                upstreams: [upstream("good.test", code: 200), upstream("bad.test", code: 502)], inFlight: 0)
        )
        let html = OverviewPage(status: page, formToken: "t").html.text
        let names = html.matches(of: /<span class="name">([^<]+)</).map { String($0.1) }
        #expect(names == ["warned", "broken", "wanted", "well", "idle", "bad.test", "good.test"])
        #expect(html.matches(of: /<p class="bad"><strong>Last error/).count == 2)
        #expect(html.contains("<span class=\"chip bad\">Degraded</span>"))
        #expect(html.matches(of: /class="[^"]*failing/).count >= 5)
    }

    /// The script finds rows by their ids.
    @Test func `no two elements have the same id, also where upstreams share a host`() {
        let hosts: [(String, String?)] = [
            ("api.test", "one"), ("api.test", "two"), ("api.test", nil), ("a-b", "c"), ("a", "b-c"), ("(none)", nil),
        ]
        let traffic = hosts.map { host, client in
            var upstream = UpstreamTraffic(name: host, client: client, bounds: [1])
            upstream.requests[502] = 1
            upstream.durations.record(.milliseconds(1))
            upstream.lastFailure = ("no", .zero)
            return upstream
        }
        let page = StatusPage(
            version: "0", uptime: .zero, isDraining: false, clients: [],
            traffic: TrafficReport(upstreams: traffic, inFlight: 0))
        let html = OverviewPage(status: page, formToken: "t").html.text
        let ids = html.matches(of: /\sid="([^"]*)"/).map { String($0.1) }
        #expect(ids.count { $0.hasPrefix("up-") } == hosts.count)
        #expect(Set(ids).count == ids.count, "\(ids)")
    }

    @Test(arguments: [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "'\u{301} onload='x", "\"\u{301} onload=\"x",
        "<\u{338}b>", "a\u{202E}b\u{0}c\u{1B}[31m", "{{csrf}}", "&lt;",
    ])
    func `any name or error on the page is shown as text`(text: String) {
        let error = HeimdallrError.clientRefused(
            .refused(OAuthError(status: 400, code: .invalidClient, detail: text, uri: nil)), retryAfter: .zero)
        let status = HeimdallrStatus(
            client: text, grantType: text, loginMethod: .browser, signedInAs: text, scope: [text], state: .backingOff,
            expiresIn: nil, hasRefreshToken: true, refreshTokenExpiresIn: nil, sinceLastSuccess: nil, lastError: error,
            sinceLastError: .zero, nextAttemptIn: .zero, waiters: 0, storeFault: text, hasSettled: true)
        var page = StatusPage(
            version: "0", uptime: .zero, isDraining: false,
            clients: [
                ReadinessAnswer.Client(
                    status: status, isUnattended: false,
                    signIn: SignInWay(client: text, method: .browser, url: nil))
            ],
            traffic: TrafficReport(
                upstreams: [UpstreamTraffic(name: text, client: text, bounds: [1])],
                inFlight: 0))
        page.untrusting = [
            UntrustingProgram(
                target: text, caller: text, program: text, reason: text, advice: text, count: 1, ago: .zero)
        ]
        let html = OverviewPage(status: page, formToken: "t").html.text
        #expect(html.contains("</html>"))
        let words = html.unicodeScalars
        #expect(!words.contains("\u{202E}") && !words.contains("\u{1B}") && !words.contains("\u{0}"))
        // The page's own markup has neither. Both would come from outside.
        for pattern in ["<script>", "<img", "<b>", "\"\u{301}", "'\u{301}"] {
            #expect(!html.utf8.contains(Array(pattern.utf8)), "\(pattern)")
        }
    }

    @Test func `the next page after a form is one of ours`() {
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
        let forms = FormTokens()
        let cookie = try RandomBytes.identifier()
        let token = try #require(forms.token(for: cookie))
        #expect(forms.accepts(token, for: cookie))
        #expect(!forms.accepts(token, for: try RandomBytes.identifier()))
        #expect(!(FormTokens()).accepts(token, for: cookie))
        #expect(!forms.accepts(nil, for: cookie))
        #expect(!forms.accepts(token, for: nil))
        for cookie in ["", "x", "a;b", String(repeating: "a", count: 23)] {
            #expect(!forms.accepts(forms.token(for: cookie), for: cookie))
        }
    }

    @Test func `a session ends in time, and with its token`() throws {
        let sessions = AdminSessions()
        let now = ContinuousClock.now
        let secret = Secret("right")
        func judge(_ offered: String, at time: ContinuousClock.Instant) -> AdminSessions.Verdict {
            sessions.judge(Secret(offered), expected: secret, from: "", now: time)
        }
        #expect(judge("right", at: now) == .right)
        let id = try #require(sessions.open(secret, now: now))
        #expect(sessions.isKnown(id, expected: secret, now: now + .seconds(3600)))
        #expect(!sessions.isKnown(id, expected: Secret("new"), now: now))
        #expect(!sessions.isKnown(id, expected: secret, now: now + AdminSessions.lifetime))
        #expect(!sessions.isKnown(nil, expected: secret, now: now))
        #expect(!sessions.isKnown("x", expected: secret, now: now))
        for _ in 0..<AdminSessions.patience {
            guard case .wrong = judge("no", at: now) else {
                Issue.record("a wrong token was accepted")
                return
            }
        }
        guard case .tooMany = judge("right", at: now) else {
            Issue.record("more guesses were judged")
            return
        }
        #expect(judge("right", at: now + .seconds(61)) == .right)
        #expect(AdminSessions().judge(Secret(""), expected: Secret(""), from: "", now: now) != .right)
    }
}

extension Sequence where Element == UInt8 {
    fileprivate func contains(_ bytes: [UInt8]) -> Bool {
        let all = Array(self)
        guard all.count >= bytes.count else { return false }
        return (0...all.count - bytes.count).contains { all[$0..<$0 + bytes.count].elementsEqual(bytes) }
    }
}
