import HTTPServer
import Heimdallr
import Logging
import Reports

/// Routes of the admin port.
enum PageRoutes {
    static func router(_ model: AdminModel, _ gate: AdminGate, _ logger: Logger) -> AdminRouter {
        var router = AdminRouter(gate: gate)
        addProbes(to: &router, model)
        addReading(to: &router, model)
        addQuitting(to: &router, model)
        OverviewRoutes(model: model, forms: gate.token.forms).add(to: &router)
        addAssets(to: &router, gate.token)
        LoginRoutes(model: model, logger: logger, offers: OfferRoutes(model: model, forms: gate.token.forms))
            .add(to: &router)
        return router
    }

    static func addProbes(to router: inout AdminRouter, _ model: AdminModel) {
        for path in ["/livez", "/healthz"] {
            router.on("GET", path, .probe) { _, _ in
                await model.isAlive() ? .plain(200, "ok\n") : .plain(503, "an event loop does not respond\n")
            }
        }
        router.on("GET", "/readyz", .probe) { request, _ in
            let readiness = await model.readiness(isStrict: request.asksFor("strict"))
            return .plain(readiness.isReady ? 200 : 503, readiness.text)
        }
        router.on("GET", "/metrics", .probe) { _, _ in
            ServerResponse(status: 200, type: PrometheusText.contentType, await model.metrics())
        }
    }

    static func addReading(to router: inout AdminRouter, _ model: AdminModel) {
        router.on("GET", "/status", .data) { request, _ in
            let status = await model.statusTexts()
            let response =
                request.parameter("format") == "text"
                ? ServerResponse.plain(200, status.plain)
                : ServerResponse(status: 200, type: "application/json", status.json)
            return response.marked(bad: status.isUnwell)
        }
        router.on("GET", "/requests", .data) { request, _ in
            guard let requests = model.sources.requests else { return noRequests }
            let report = await requests(RecentRequests.counts(request.parameter("after")))
            return request.values("Accept").contains { $0.contains("text/html") }
                ? .page(200, RequestsPage(requests: report.requests).html)
                : ServerResponse(status: 200, type: "application/json", report.json.document)
        }
        router.on("GET", "/requests/fragment", .data) { _, _ in
            guard let requests = model.sources.requests else { return noRequests }
            return .page(200, RequestsPage(requests: await requests([]).requests).live)
        }
        router.on("GET", "/events", .data) { _, _ in events(model) }
    }

    static var noRequests: ServerResponse {
        .problem(.nothingHere, "The proxy keeps no requests: admin.requests is false.\n")
    }

    /// Adds a path that stops the proxy, for a job's program in another container, which can't send a signal.
    static func addQuitting(to router: inout AdminRouter, _ model: AdminModel) {
        guard model.sources.quit != nil else { return }
        router.on("POST", "/quitquitquit", .data) { _, _ in
            model.quit()
            return .plain(200, "stopping\n")
        }
    }

    /// Files of every page, and the target of the token's form.
    private static func addAssets(to router: inout AdminRouter, _ gate: TokenGate) {
        let assets = [
            ("/page.css", "text/css; charset=utf-8", PageAssets.style),
            ("/page.js", "text/javascript; charset=utf-8", PageAssets.script),
            ("/icon.svg", "image/svg+xml", PageAssets.icon),
        ]
        for (path, type, text) in assets {
            router.on("GET", path, .open) { _, _ in ServerResponse(status: 200, type: type, text) }
        }
        router.on("POST", "/enter", .open) { request, _ in await gate.enter(request) }
    }

    private static func events(_ model: AdminModel) -> ServerResponse {
        guard let frames = model.feed.subscribe() else {
            return .problem(.busy, "There are too many readers of /events.\n")
        }
        return ServerResponse(status: 200, fields: [("Content-Type", "text/event-stream")], body: .pieces(frames))
    }
}
