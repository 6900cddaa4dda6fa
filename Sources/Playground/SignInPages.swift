import HTML
import HTTPMessage
import HTTPServer
import WireText

/// The pages on which a person consents. Each page is a function from a request's parameters to an answer.
enum SignInPages {
    private typealias Page = @Sendable (FormParameters, _ issuer: String, inout AuthorizationServer) -> ServerResponse

    static func add(to router: inout Router, _ server: SharedAuthorizationServer) {
        func on(_ method: String, _ path: String, _ answer: @escaping Page) {
            router.on(method, path) { request, _ in
                let fields = method == "GET" ? Array((request.query ?? "").utf8) : request.body
                guard let parameters = FormParameters(fields) else {
                    return page(
                        400, "This address is malformed", "<p>A parameter occurs twice, or is not UTF-8.</p>")
                }
                let issuer = TokenEndpoint.issuer(of: request)
                return server.withServer { answer(parameters, issuer, &$0) }
            }
        }
        on("GET", "/authorize", consent)
        on("POST", "/authorize", decided)
        on("GET", "/device") { parameters, _, _ in device(parameters["user_code"] ?? "", nil) }
        on("POST", "/device", deviceDecided)
    }

    private static func consent(
        _ parameters: FormParameters, _ issuer: String, _ server: inout AuthorizationServer
    ) -> ServerResponse {
        // Redirects only to addresses that the client may use (RFC 6749, section 4.1.2.1).
        guard let id = parameters["client_id"], server.knows(client: id, now: .now) else {
            return page(400, "This client is not known here", "<p>The client_id in the address is unknown.</p>")
        }
        guard let redirectURI = parameters["redirect_uri"], isLoopback(redirectURI),
            server.permits(redirectURI, client: id, now: .now)
        else {
            return page(
                400, "This sign-in would lead elsewhere",
                "<p>The redirect_uri must lead to this machine, and belong to the client: http://127.0.0.1:PORT/…</p>")
        }
        let state = parameters["state"]
        func refused(_ error: String, _ sentence: String) -> ServerResponse {
            redirect(
                redirectURI, [("error", error), ("error_description", sentence), ("state", state), ("iss", issuer)])
        }
        guard parameters["response_type"] == "code" else {
            return refused("unsupported_response_type", "The playground knows response_type=code.")
        }
        guard let challenge = parameters["code_challenge"], parameters["code_challenge_method"] == "S256",
            challenge.utf8.count == 43
        else { return refused("invalid_request", "The playground requires PKCE with S256.") }
        guard let scope = AuthorizationServer.known(scope: parameters["scope"]) else {
            return refused("invalid_scope", "The scopes here are read and write.")
        }
        let ticket = RandomText.make()
        server.signIns.questions.insert(
            ticket,
            SignInGrants.Question(
                client: id, redirectURI: redirectURI, state: state, challenge: challenge, scope: scope), now: .now)
        return page(
            200, "May \(server.name(ofClient: id, now: .now)) act for you?",
            """
            <p>You are <b>guest</b> here: the playground is a demonstration, and knows nobody else.
            The program asks for <b>\(scope)</b>.</p>
            <form method="post" action="/authorize">
            <input type="hidden" name="ticket" value="\(ticket)">
            <button name="decision" value="allow">Allow</button>
            <button name="decision" value="deny">Deny</button>
            </form>
            """)
    }

    private static func decided(
        _ parameters: FormParameters, _ issuer: String, _ server: inout AuthorizationServer
    ) -> ServerResponse {
        guard let ticket = parameters["ticket"], let question = server.signIns.questions.grant(for: ticket, now: .now)
        else {
            return page(
                400, "This page was answered already",
                "<p>Or it is older than ten minutes. Begin the sign-in again.</p>")
        }
        server.signIns.questions.remove(ticket)
        guard parameters["decision"] == "allow" else {
            return redirect(
                question.redirectURI,
                [
                    ("error", "access_denied"), ("error_description", "You denied it."), ("state", question.state),
                    ("iss", issuer),
                ])
        }
        let code = RandomText.make()
        server.signIns.codes.insert(code, SignInGrants.Code(question: question), now: .now)
        return redirect(question.redirectURI, [("code", code), ("state", question.state), ("iss", issuer)])
    }

    private static func device(_ code: String, _ problem: String?) -> ServerResponse {
        let complaint: HTML = if let problem { "<p><b>\(problem)</b></p>" } else { "" }
        return page(
            problem == nil ? 200 : 400, "May the program with this code act for you?",
            """
            \(alreadyHTML: complaint)
            <p>You are <b>guest</b> here. Allow it if this is the code that the program shows.</p>
            <form method="post" action="/device">
            <p><input name="user_code" value="\(code)" autocomplete="off" aria-label="Code"></p>
            <button name="decision" value="allow">Allow</button>
            <button name="decision" value="deny">Deny</button>
            </form>
            """)
    }

    private static func deviceDecided(
        _ parameters: FormParameters, _ issuer: String, _ server: inout AuthorizationServer
    ) -> ServerResponse {
        let code = parameters["user_code"] ?? ""
        let allowed = parameters["decision"] == "allow"
        guard server.signIns.decide(userCode: code, allowed: allowed, now: .now) else {
            return device(code, "No program waits with this code, or it has expired.")
        }
        return page(
            200, allowed ? "You are signed in" : "You denied the sign-in",
            "<p>The program will notice in a moment. You may close this page.</p>")
    }

    /// Whether the URI leads to this machine, on any port (RFC 8252, section 7.3).
    static func isLoopback(_ uri: String) -> Bool {
        guard let url = try? WebURL(uri) else { return false }
        return url.scheme == .http && url.isCanonical && url.authority.host.isThisMachine
    }

    private static func redirect(_ uri: String, _ parameters: [(String, String?)]) -> ServerResponse {
        let query = parameters.compactMap { name, value in value.map { "\(name)=\(PercentEncoding.uri.encode($0))" } }
        var answer = response(303, "text/plain; charset=utf-8", "")
        answer.set("Location", uri + (uri.contains("?") ? "&" : "?") + query.joined(separator: "&"))
        return answer
    }

    private static func page(_ status: Int, _ headline: String, _ content: HTML) -> ServerResponse {
        let html: HTML = """
            <!doctype html>
            <html lang="en">
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>Playground: \(headline)</title>
            <style>
            :root { color-scheme: light dark }
            body { font: 1rem/1.5 system-ui, sans-serif; max-width: 30rem; margin: 3rem auto; padding: 0 1rem }
            button, input { font: inherit; padding: .4rem 1rem; min-height: 24px }
            </style>
            <main>
            <h1>\(headline)</h1>
            \(alreadyHTML: content)
            </main>
            </html>

            """
        return response(status, "text/html; charset=utf-8", html.text)
    }

    private static func response(_ status: Int, _ type: String, _ text: String) -> ServerResponse {
        var response = ServerResponse(status: status, type: type, text)
        response.set("Cache-Control", "no-store")
        response.set(
            "Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
        return response
    }
}
