import HTML
import Heimdallr
import Hummingbird
import Logging
import NIOCore

/// Asks for `admin.token` where one is set: of programs in each request, of browsers once, in a form.
struct TokenGate: Sendable {
    /// Read anew for each request, so that it can be rotated. `nil`: nothing is asked for.
    let token: (any SecretProvider)?
    let forms: FormTokens
    let sessions = AdminSessions()

    /// - Returns: `nil` when the request may go on.
    func refusal(_ request: Request, _ context: AdminContext, asksInAForm: Bool) async -> Response? {
        guard let token else { return nil }
        guard let expected = await secret(token, context) else { return Self.unavailable }
        if let offered = request.bearerToken {
            let verdict = sessions.judge(offered, expected: expected, from: context.caller)
            log(verdict, context)
            switch verdict {
            case .right: return nil
            case .wrong: break
            case .tooMany:
                var response = Response.plain(
                    .tooManyRequests, "Too many wrong tokens came from your address. Wait a minute, then try again.\n")
                response.set("Retry-After", String(GuessLimit.window.components.seconds))
                return response
            }
        }
        let cookie = request.cookies[AdminSessions.cookie(port: context.localAddress?.port)]
        if sessions.isKnown(cookie, expected: expected) { return nil }
        if asksInAForm, request.bearerToken == nil {
            let query = request.uri.query.map { "?" + $0 } ?? ""
            return form(request, next: request.uri.path + query, wrong: nil, .unauthorized)
        }
        var response = Response.plain(.unauthorized, "Send Authorization: Bearer … with the value of admin.token.\n")
        response.headers[.wwwAuthenticate] = "Bearer realm=\"heimdallr-proxy\""
        return response
    }

    /// `POST /enter`: what the form sends.
    func enter(_ request: Request, _ context: AdminContext) async -> Response {
        guard let token else { return .redirect(to: "/") }
        guard let fields = await request.form(),
            forms.accepts(fields["csrf"], for: request.cookies[FormTokens.cookie])
        else { return .page(.forbidden, StalePage.html, sendsForms: true) }
        guard let expected = await secret(token, context) else { return Self.unavailable }
        let next = Self.ownPath(fields["next"])
        let answer = sessions.enter(Secret(fields["token"] ?? ""), expected: expected, from: context.caller) {
            log($0, context)
        }
        switch answer {
        case .welcome(let id):
            var response = Response.redirect(to: next)
            response.setCookie(
                AdminSessions.cookie(port: context.localAddress?.port), id, sameSite: "Strict",
                maxAge: Int(AdminSessions.lifetime.components.seconds))
            return response
        case .wrong:
            return form(request, next: next, wrong: "That is not it. Look at what admin.token says.", .forbidden)
        case .tooMany:
            return form(
                request, next: next, wrong: "Too many wrong tokens. Wait a minute, then try again.", .tooManyRequests)
        case .failed: return Self.unavailable
        }
    }

    /// Once in a while for each address, so that nobody fills the log.
    private func log(_ verdict: AdminSessions.Verdict, _ context: AdminContext) {
        let (untold, isLookedAt): (Int?, Bool)
        switch verdict {
        case .right: return
        case .wrong(let count): (untold, isLookedAt) = (count, true)
        case .tooMany(let count): (untold, isLookedAt) = (count, false)
        }
        guard let untold else { return }
        context.logger.warning(
            isLookedAt
                ? "a wrong admin.token was given"
                : "too many wrong values of admin.token: no more are looked at for up to a minute",
            metadata: ["peer": "\(context.caller)", "wrong": "\(untold)"])
    }

    private func form(
        _ request: Request, next: String, wrong: String?, _ status: HTTPResponse.Status
    ) -> Response {
        let (cookie, isNew) = forms.cookie(of: request)
        let form = TokenForm(
            csrf: cookie.flatMap { forms.token(for: $0) } ?? "", next: Self.ownPath(next), wrong: wrong)
        var response = Response.page(status, form.html, sendsForms: true)
        if isNew, let cookie { response.setCookie(FormTokens.cookie, cookie, sameSite: "Lax") }
        return response
    }

    private func secret(_ token: any SecretProvider, _ context: AdminContext) async -> Secret? {
        do { return try await token.secret() } catch {
            let reason = (error as? SecretProviderError)?.description ?? "it can't be read"
            context.logger.error("admin.token can't be had", metadata: ["reason": "\(reason)"])
            return nil
        }
    }

    private static var unavailable: Response {
        .plain(.internalServerError, "admin.token can't be had; the log says why.\n")
    }

    /// Never to another host: `//host` and `/\host` are such.
    static func ownPath(_ path: String?) -> String {
        guard let path, path.hasPrefix("/"), !path.hasPrefix("//"), path.utf8.count <= 512,
            path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") })
        else { return "/" }
        return path
    }
}

extension FormTokens {
    /// The browser's cookie, or a new one that has to be set; `nil` only without random numbers.
    func cookie(of request: Request) -> (value: String?, isNew: Bool) {
        if let cookie = request.cookies[Self.cookie], Self.isPlausible(cookie) { return (cookie, false) }
        return (try? Self.newCookie(), true)
    }
}

/// For a form whose cookie is gone.
enum StalePage {
    static let html = MessagePage(
        title: "Too old", headline: "This form is too old", tone: "bad",
        lines: ["Nothing was done. Go back to the overview and try again."]
    ).html

    static let sentence = "This page is too old, and nothing was done. Load it again.\n"
}
