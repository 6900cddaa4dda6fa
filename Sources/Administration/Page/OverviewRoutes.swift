import HTML
import HTTPServer
import Heimdallr
import Reactor

/// The page at `/`, its updates, and its buttons.
struct OverviewRoutes: Sendable {
    let model: AdminModel
    let forms: FormTokens
    /// Renders pages one at a time.
    let pages = BlockingQueue()

    func add(to router: inout AdminRouter) {
        router.on("GET", "/", .page) { request, _ in await show(request) { $0.html } }
        router.on("GET", "/fragment", .data) { request, _ in await show(request) { $0.live } }
        router.on("POST", "/logout/{client}", .data) { request, context in
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
        router.on("POST", "/refresh/{client}", .data) { request, context in
            await change(request, context) { client, _ in
                let refresh = await RefreshText.make(client, model)
                return Outcome(
                    isGood: refresh.isGood, headline: refresh.isGood ? "A new token" : "No new token",
                    text: refresh.text)
            }
        }
    }

    private struct Outcome {
        var isGood: Bool
        var headline: String
        var text: String
        /// Client whose tokens a person may forget without a revocation at the server.
        var forgets: String?
    }

    private func show(
        _ request: ServerRequest, _ part: @escaping @Sendable (OverviewPage) -> HTML
    ) async -> ServerResponse {
        let status = await model.status()
        let keepsRequests = model.sources.requests != nil
        return await forms.page(200, for: request) { token in
            await pages.run { part(OverviewPage(status: status, formToken: token, keepsRequests: keepsRequests)) }
        }
    }

    private func change(
        _ request: ServerRequest, _ context: AdminContext,
        _ act: @Sendable (AdministrationSources.Client, [String: String]) async -> Outcome
    ) async -> ServerResponse {
        guard let fields = forms.fields(of: request) else {
            return request.wantsPlainText
                ? .problem(.staleForm, StalePage.sentence)
                : ServerResponse.page(403, StalePage.html).marked(.staleForm)
        }
        guard let client = model.client(context) else { return CommandRoutes.unknownClient(model, context) }
        let outcome = await act(client, fields)
        let status = outcome.isGood ? 200 : 502
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

extension AdminModel {
    /// Returns the client named in the path.
    func client(_ context: AdminContext) -> AdministrationSources.Client? {
        context.parameters["client"].flatMap { sources.client(named: $0) }
    }

    /// Whether a person can sign in to the client at the page. Otherwise a command is needed.
    /// - Parameter host: Host of a browser that has opened the page: a forwarded port leads here, too.
    func signsInHere(_ name: String, at host: String? = nil) -> Bool {
        guard let client = sources.client(named: name) else { return false }
        let redirectURI = addresses.redirectURI(of: client)
        return switch client.heimdallr.loginMethod {
        case .browser, .implicit:
            addresses.isServed(redirectURI)
                || host.map { host in
                    addresses.ownOrigin(of: redirectURI).map { LoginAddresses.isSame(host, $0.url) } ?? false
                } ?? false
        case .device: true
        case .password, nil: false
        }
    }
}
