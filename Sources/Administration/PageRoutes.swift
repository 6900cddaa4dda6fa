import HTTPTypes
import Hummingbird

/// What the admin port answers.
enum PageRoutes {
    static func router(_ office: Office, admission: Admission, gate: TokenGate) -> Router<AdminContext> {
        let router = Router(context: AdminContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: AnswerMiddleware())
        addProbes(to: router, office)
        func group(_ area: AdmissionMiddleware.Area) -> RouterGroup<AdminContext> {
            router.group().add(middleware: AdmissionMiddleware(admission: admission, gate: gate, area: area))
        }
        addReading(to: group(.data), office)
        let overview = OverviewRoutes(office: office, forms: gate.forms)
        overview.addPages(to: group(.page))
        overview.addChanges(to: group(.data))
        addAssets(to: group(.open), gate)
        let logins = LoginRoutes(office: office)
        logins.addPages(to: group(.page))
        logins.addCallbacks(to: group(.callback))
        return router
    }

    /// For orchestrators and scrapers, which ask by address and without a token: any Host, no secret, nothing changes.
    static func addProbes(to router: Router<AdminContext>, _ office: Office) {
        for path: RouterPath in ["livez", "healthz"] {
            router.get(path) { _, _ in
                await office.isAlive()
                    ? Response.plain(.ok, "ok\n")
                    : Response.plain(.serviceUnavailable, "a loop of the proxy does not turn\n")
            }
        }
        router.get("readyz") { request, _ in
            let readiness = office.readiness(isStrict: request.asksFor("strict"))
            return Response.plain(readiness.isReady ? .ok : .serviceUnavailable, readiness.text)
        }
        router.get("metrics") { _, _ in
            Response.content(.ok, PrometheusText.contentType, await office.metrics())
        }
    }

    static func addReading(to group: some RouterMethods<AdminContext>, _ office: Office) {
        group.get("status") { request, _ in
            let status = await office.statusTexts()
            let response =
                request.uri.queryParameters["format"] == "text"
                ? Response.plain(.ok, status.plain)
                : Response.content(.ok, "application/json", status.json)
            return response.marked(bad: status.isUnwell)
        }
        group.get("events") { _, _ in events(office) }
    }

    /// What every page loads, and the form that asks for the token.
    private static func addAssets(to group: some RouterMethods<AdminContext>, _ gate: TokenGate) {
        group.get("page.css") { _, _ in Response.content(.ok, "text/css; charset=utf-8", PageAssets.style) }
        group.get("page.js") { _, _ in Response.content(.ok, "text/javascript; charset=utf-8", PageAssets.script) }
        group.get("icon.svg") { _, _ in Response.content(.ok, "image/svg+xml", PageAssets.icon) }
        group.post("enter") { request, context in await gate.enter(request, context) }
    }

    private static func events(_ office: Office) -> Response {
        guard let frames = office.feed.subscribe() else {
            return Response.plain(.serviceUnavailable, "There are too many readers of /events.\n")
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream"],
            body: ResponseBody { writer in
                try await writer.write(ByteBuffer(string: "retry: 3000\n\n"))
                for await frame in frames { try await writer.write(ByteBuffer(string: frame)) }
                try await writer.finish(nil)
            })
    }
}

extension Request {
    /// Whether the query has this word, as `?word`, `?word=` or `?word=true`.
    func asksFor(_ word: Substring) -> Bool {
        guard let value = uri.queryParameters[word] else { return false }
        return value != "false" && value != "0"
    }
}
