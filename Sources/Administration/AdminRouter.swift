import HTTPServer

/// Routes of one listener, each with its access rules.
struct AdminRouter: Sendable {
    typealias Handler = @Sendable (ServerRequest, AdminContext) async -> ServerResponse

    /// Access control; `nil` if every connected client may use all routes.
    private let gate: AdminGate?
    /// Limit of concurrent requests other than probes. These requests and the readers of `/events` use at most three
    /// quarters of the connections. The rest remains for probes.
    private let busy = ConcurrencyLimit(
        ServerSettings.administration.maxConnections * 3 / 4 - EventFeed.maxReaders)
    private var table = Router()

    init(gate: AdminGate?) { self.gate = gate }

    /// - Parameter pattern: see `Router.on`.
    mutating func on(_ method: String, _ pattern: String, _ area: AdminGate.Area, _ handler: @escaping Handler) {
        table.on(method, pattern) { [gate, busy] request, parameters in
            let context = AdminContext(parameters: parameters)
            guard area != .probe else { return await handler(request, context) }
            let response = await busy.run {
                guard let gate else { return await handler(request, context) }
                switch await gate.judge(request, area) {
                case .refused(let response): return response
                case .admitted(let isForeign):
                    return await handler(request, AdminContext(parameters: parameters, isForeign: isForeign))
                }
            }
            return response ?? .problem(.busy, "Too many requests are under way. Try again in a moment.\n")
        }
    }

    var reservedNames: Set<String> { table.reservedNames }

    /// Answers a request. Every answer, also an error, gets the security fields.
    func respond(to request: ServerRequest) async -> ServerResponse {
        let front = gate?.origins.front
        var response = await answer(front?.inside(request) ?? request)
        if let front { response = front.outside(response) }
        if request.values("Accept").contains(where: { $0.contains("application/problem+json") }) {
            response.explainForPrograms()
        }
        response.set("Cache-Control", "no-store")
        response.set("X-Content-Type-Options", "nosniff")
        // Pages set some of these fields themselves.
        for (name, value) in Self.fields where response.value(name) == nil { response.append(name, value) }
        return response
    }

    private func answer(_ request: ServerRequest) async -> ServerResponse {
        switch table.match(request) {
        case .route(let handler, let parameters): return await handler(request, parameters)
        // A known path with another method gets 404 too.
        case .otherMethods: return Self.nothing(for: request)
        case .nothing: return gate?.refusal(of: request) ?? Self.nothing(for: request)
        }
    }

    /// A 404: a page for browsers, text for programs.
    private static func nothing(for request: ServerRequest) -> ServerResponse {
        guard request.values("Accept").contains(where: { $0.contains("text/html") }) else {
            return .problem(.nothingHere, "There is nothing here.\n")
        }
        let page = MessagePage(
            title: "Nothing here", headline: "There is nothing here", tone: "warn",
            lines: ["The administration has no page at this address."])
        return ServerResponse.page(404, page.html).marked(.nothingHere)
    }

    private static let fields = [
        ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ]
}

/// Facts about a request that are not in its message.
struct AdminContext: Sendable {
    /// Values from the path, by the names in the route's pattern.
    let parameters: Router.Parameters
    /// Whether another site, or a link in a mail or chat, led to this request. A change then needs a confirmation.
    var isForeign = false
}
