import HTTPServer
import Heimdallr
import Reports

/// Routes of the admin socket: probes, status and events as at the port, and routes that only this user may use.
enum CommandRoutes {
    static func router(_ model: AdminModel) -> AdminRouter {
        var router = AdminRouter(gate: nil)
        PageRoutes.addProbes(to: &router, model)
        PageRoutes.addReading(to: &router, model)
        PageRoutes.addQuitting(to: &router, model)
        TokenExport(model: model).add(to: &router)
        router.on("POST", "/logout/{client}", .data) { request, context in
            await logout(model, context, isLocal: request.asksFor("local"))
        }
        router.on("POST", "/refresh/{client}", .data) { _, context in
            guard let client = model.client(context) else { return unknownClient(model, context) }
            return await RefreshText.make(client, model).response
        }
        LoginCommandRoutes(model: model).add(to: &router)
        router.on("GET", "/why", .data) { request, _ in await why(model, request) }
        router.on("POST", "/reload", .data) { _, _ in
            let answer = await model.sources.reload()
            return ServerResponse.plain(answer.isGood ? 200 : 422, answer.text)
        }
        router.on("GET", "/log-level", .data) { _, _ in logLevel(model, nil) }
        router.on("POST", "/log-level", .data) { request, _ in
            logLevel(model, (request.parameter("level") ?? "", request.parameter("for")))
        }
        return router
    }

    private static func logLevel(_ model: AdminModel, _ wanted: (level: String, time: String?)?) -> ServerResponse {
        let answer = model.sources.logLevel(wanted)
        return ServerResponse.plain(answer.isGood ? 200 : 400, answer.text)
    }

    private static func logout(_ model: AdminModel, _ context: AdminContext, isLocal: Bool) async -> ServerResponse {
        guard let client = model.client(context) else { return unknownClient(model, context) }
        let report = await client.heimdallr.logOut(locally: isLocal)
        return ServerResponse.plain(
            report.isComplete ? 200 : 502, LogoutText.text(report, client: client.heimdallr.name))
    }

    private static func why(_ model: AdminModel, _ request: ServerRequest) async -> ServerResponse {
        if let id = request.parameter("id") {
            return await why(model, id, isJSON: request.parameter("format") == "json")
        }
        guard let url = request.parameter("url") else {
            return ServerResponse.plain(400, "Give the URL: ?method=GET&url=http://…, or a request's ID: ?id=…\n")
        }
        let method = request.parameter("method") ?? "GET"
        let fields = request.parameters("field").map { $0.replacing("=", with: ": ", maxReplacements: 1) }
        guard fields.allSatisfy({ !$0.utf8.contains { $0 < 0x20 && $0 != 0x09 } }) else {
            return ServerResponse.plain(400, "A field has a line end or another control character.\n")
        }
        let route = await model.sources.route(method, url, fields)
        let why = WhyText(model: model)
        let answer =
            request.parameter("format") == "json"
            ? ServerResponse(status: 200, type: "application/json", why.json(route).document)
            : ServerResponse.plain(200, why.text(route))
        return answer.marked(bad: why.isRefused(route))
    }

    /// Explains one of the last requests.
    private static func why(_ model: AdminModel, _ id: String, isJSON: Bool) async -> ServerResponse {
        guard let requests = model.sources.requests else { return PageRoutes.noRequests }
        // A program may use an ID twice: the last request counts.
        guard let request = await requests([]).requests.last(where: { $0.id == id }) else {
            return .problem(
                .nothingHere,
                "No request of that ID is among the last \(RecentRequests.most): see `heimdallr-proxy requests`.\n")
        }
        let answer =
            isJSON
            ? ServerResponse(status: 200, type: "application/json", request.json.document)
            : ServerResponse.plain(200, Sentence.plain(request.text))
        return answer.marked(bad: request.isRefused)
    }

    static func unknownClient(_ model: AdminModel, _ context: AdminContext) -> ServerResponse {
        let names = model.sources.clients.map(\.heimdallr.name).sorted()
        guard !names.isEmpty else { return .problem(.noClient, "The configuration has no clients.\n") }
        let near = context.parameters["client"].flatMap { model.sources.nearest($0, names) }
        let meant = near.map { " Did you mean \($0)?" } ?? ""
        return .problem(
            .noClient,
            "The configuration has no client of that name.\(meant) Its clients: \(names.joined(separator: ", ")).\n")
    }
}
