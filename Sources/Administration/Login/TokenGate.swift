import HTTPServer
import HTML
import Heimdallr
import Logging
import Reactor

/// Requires `admin.token`, if it is set. Programs send it in each request, browsers once, in a form.
struct TokenGate: Sendable {
    /// Source of `admin.token`, which is read for each request, so that it can be rotated; `nil` if it is not set.
    let token: (any SecretProvider)?
    let forms: FormTokens
    let logger: Logger
    let sessions = AdminSessions()

    /// - Returns: `nil` for an authorized request.
    func refusal(_ request: ServerRequest, asksInAForm: Bool) async -> ServerResponse? {
        guard let token else { return nil }
        guard let expected = await secret(token) else { return Self.unavailable }
        if let offered = request.bearerToken {
            let verdict = sessions.judge(offered, expected: expected, from: request.caller)
            log(verdict, request)
            switch verdict {
            case .right: return nil
            case .wrong: break
            case .tooMany:
                var response = ServerResponse.problem(
                    .tooManyGuesses, "Too many wrong tokens came from your address. Wait a minute, then try again.\n")
                response.set("Retry-After", String(FailedLoginLimit.window.components.seconds))
                return response
            }
        }
        let cookie = request.cookies[AdminSessions.cookie(port: request.localAddress?.port)]
        if sessions.isKnown(cookie, expected: expected) { return nil }
        if asksInAForm, request.bearerToken == nil {
            let next = request.method == "GET" ? PassingPage.first(request.target) : "/"
            return await form(request, next: next, wrong: nil, 401)
        }
        var response = ServerResponse.problem(
            .tokenNeeded, "Send Authorization: Bearer … with the value of admin.token.\n")
        response.set("WWW-Authenticate", "Bearer realm=\"heimdallr-proxy\"")
        return response
    }

    /// Whether the browser, which sent no session cookie, may have one: it has entered the token before.
    func mayHaveSession(_ request: ServerRequest) -> Bool {
        let (cookies, port) = (request.cookies, request.localAddress?.port)
        return token != nil && cookies[AdminSessions.cookie(port: port)] == nil
            && cookies[AdminSessions.mark(port: port)] != nil
    }

    /// Handles `POST /enter`, the target of the token's form.
    func enter(_ request: ServerRequest) async -> ServerResponse {
        guard let token else { return .redirect(to: "/") }
        guard let fields = forms.fields(of: request) else {
            return ServerResponse.page(403, StalePage.html, sendsForms: true).marked(.staleForm)
        }
        guard let expected = await secret(token) else { return Self.unavailable }
        let next = Self.ownPath(fields["next"])
        let verdict = sessions.judge(Secret(fields["token"] ?? ""), expected: expected, from: request.caller)
        log(verdict, request)
        switch verdict {
        case .right:
            guard let id = sessions.open(expected) else { return Self.unavailable }
            // A sign-in leads on to another origin, to which no form of ours may lead.
            var response = next.hasPrefix("/login/") ? PassingPage.to(next) : ServerResponse.redirect(to: next)
            let (port, age) = (request.localAddress?.port, Int(AdminSessions.lifetime.components.seconds))
            response.setCookie(AdminSessions.cookie(port: port), id, sameSite: "Strict", maxAge: age)
            response.setCookie(AdminSessions.mark(port: port), "1", sameSite: "Lax", maxAge: age)
            return response
        case .wrong:
            return await form(request, next: next, wrong: "This token is wrong. Compare it with admin.token.", 403)
        case .tooMany:
            return await form(
                request, next: next, wrong: "Too many wrong tokens. Wait a minute, then try again.", 429)
        }
    }

    /// Logs wrong tokens, with a rate limit for each address.
    private func log(_ verdict: AdminSessions.Verdict, _ request: ServerRequest) {
        let (unreported, sentence): (Int?, Logger.Message) =
            switch verdict {
            case .right: (nil, "")
            case .wrong(let count): (count, "a wrong admin.token was given")
            case .tooMany(let count):
                (count, "too many wrong values of admin.token: all further values are refused for up to a minute")
            }
        guard let unreported else { return }
        logger.warning(sentence, metadata: ["peer": "\(request.caller)", "wrong": "\(unreported)"])
    }

    private func form(_ request: ServerRequest, next: String, wrong: String?, _ status: Int) async -> ServerResponse {
        await forms.page(status, for: request) {
            TokenForm(csrf: $0 ?? "", next: Self.ownPath(next), wrong: wrong).html
        }
    }

    private func secret(_ token: any SecretProvider) async -> Secret? {
        do { return try await token.secret() } catch {
            let reason = (error as? SecretProviderError)?.description ?? "it can't be read"
            logger.error("admin.token can't be read", metadata: ["reason": "\(reason)"])
            return nil
        }
    }

    private static var unavailable: ServerResponse {
        .problem(.tokenUnreadable, "admin.token can't be read; the log says why.\n")
    }

    /// Returns a path on this host; `/` for other targets such as `//host` and `/\host`.
    static func ownPath(_ path: String?) -> String {
        guard let path, path.hasPrefix("/"), !path.hasPrefix("//"), path.utf8.count <= 512,
            path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") })
        else { return "/" }
        return path
    }
}

/// The answer to a form whose token does not fit the browser's cookie.
enum StalePage {
    static let html = MessagePage(
        title: "Too old", headline: "This form is too old", tone: "bad",
        lines: ["Nothing was done. Go back to the overview and try again."]
    ).html

    static let sentence = "This page is too old, and nothing was done. Load it again.\n"
}

struct TokenForm {
    let csrf: String
    /// Path of the next page, on this host.
    let next: String
    /// Sentence about the last value, if that was wrong.
    let wrong: String?

    var html: HTML {
        PageLayout(title: "Token").card(
            """
            <h1>This page requires its token</h1>
            \(alreadyHTML: complaint)<form method="post" action="/enter" class="gate">
            <input type="hidden" name="csrf" value="\(csrf)"><input type="hidden" name="next" value="\(next)">
            <label for="token">The value of <code>admin.token</code></label>
            <input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
            <button class="button main">Go on</button>
            </form>
            """)
    }

    private var complaint: HTML? { wrong.map { "<p class=\"bad\" role=\"alert\">\($0)</p>\n" } }
}
