import HTML
import Heimdallr
import Hummingbird

/// The page at `/`, the part of it that is fetched again and again, and its buttons.
struct OverviewRoutes: Sendable {
    let office: Office
    let forms: FormTokens

    func addPages(to group: some RouterMethods<AdminContext>) {
        group.get("/") { request, _ in await show(request) { $0.html } }
    }

    func addChanges(to group: some RouterMethods<AdminContext>) {
        group.get("fragment") { request, _ in await show(request) { $0.live } }
        group.post("logout/:client") { request, context in
            await change(request, context) { client, fields in
                let isLocal = fields["local"] == "true"
                let report = await client.heimdallr.logOut(locally: isLocal)
                let good = isLocal ? "Forgotten here" : "Signed out"
                return Outcome(
                    isGood: report.isComplete, headline: report.isComplete ? good : "Not signed out",
                    text: LogoutText.text(report, client: client.heimdallr.name),
                    forgets: report.isForgotten ? nil : client.heimdallr.name)
            }
        }
        group.post("refresh/:client") { request, context in
            await change(request, context) { client, _ in
                client.heimdallr.refreshNow()
                return Outcome(
                    isGood: true, headline: "Asked for a new token",
                    text: "Client \(client.heimdallr.name) asks for a new token. The overview shows what comes of it.\n"
                )
            }
        }
    }

    private struct Outcome {
        var isGood: Bool
        var headline: String
        var text: String
        /// The client whose tokens can still be forgotten without the server.
        var forgets: String?
    }

    private func show(_ request: Request, _ part: (OverviewPage) -> HTML) async -> Response {
        let (cookie, isNew) = forms.cookie(of: request)
        let page = OverviewPage(
            status: await office.status(), formToken: cookie.flatMap { forms.token(for: $0) })
        var response = Response.page(.ok, part(page), sendsForms: true)
        if isNew, let cookie { response.setCookie(FormTokens.cookie, cookie, sameSite: "Lax") }
        return response
    }

    private func change(
        _ request: Request, _ context: AdminContext,
        _ act: @Sendable (AdministrationSources.Client, [String: String]) async -> Outcome
    ) async -> Response {
        let fields = await request.form() ?? [:]
        guard forms.accepts(fields["csrf"], for: request.cookies[FormTokens.cookie]) else {
            return request.wantsPlainText
                ? .plain(.forbidden, StalePage.sentence) : .page(.forbidden, StalePage.html)
        }
        guard let client = office.client(context) else {
            return .plain(.notFound, "The configuration has no client of that name.\n")
        }
        let outcome = await act(client, fields)
        let status: HTTPResponse.Status = outcome.isGood ? .ok : .badGateway
        if request.wantsPlainText { return .plain(status, outcome.text) }
        let lines = outcome.text.split(separator: "\n").map(String.init)
        var page = MessagePage(
            title: outcome.headline, headline: outcome.headline, tone: outcome.isGood ? "good" : "bad", lines: lines)
        if !outcome.isGood, let name = outcome.forgets {
            page.forgetting = MessagePage.Forgetting(client: name, csrf: fields["csrf"] ?? "")
        }
        return .page(status, page.html, sendsForms: true)
    }
}

extension Office {
    /// The client that the path names.
    func client(_ context: AdminContext) -> AdministrationSources.Client? {
        context.parameters.get("client").flatMap { sources.client(named: $0) }
    }

    /// Whether the page can sign it in, or only a command can.
    func signsInHere(_ name: String) -> Bool {
        guard let client = sources.client(named: name) else { return false }
        return switch client.heimdallr.loginMethod {
        case .browser, .implicit: addresses.ownOrigin(of: addresses.redirectURI(of: client)) != nil
        case .device: true
        case .password, nil: false
        }
    }
}
