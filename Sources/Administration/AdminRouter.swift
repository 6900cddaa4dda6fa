import HTTPServer

/// One listener's table of routes, and who may use each.
struct AdminRouter: Sendable {
    typealias Handler = @Sendable (ServerRequest, AdminContext) async -> ServerResponse

    /// `nil`: everybody who can connect may ask for everything.
    private let door: AdminDoor?
    private let crowd = BusyRequests()
    private var table = Router()

    init(door: AdminDoor?) { self.door = door }

    /// - Parameter pattern: as `Router.on` has it.
    mutating func on(_ method: String, _ pattern: String, _ area: AdminDoor.Area, _ handler: @escaping Handler) {
        table.on(method, pattern) { [door, crowd] request, parameters in
            let context = AdminContext(parameters: parameters)
            guard area != .probe else { return await handler(request, context) }
            return await crowd.answer {
                guard let door else { return await handler(request, context) }
                switch await door.look(at: request, area) {
                case .refused(let response): return response
                case .admitted(let isForeign):
                    return await handler(request, AdminContext(parameters: parameters, isForeign: isForeign))
                }
            }
        }
    }

    /// What no other route may begin with.
    var reservedNames: Set<String> { table.reservedNames }

    /// Every answer, errors too: kept by nobody, framed by nobody, taken for nothing else.
    func respond(to request: ServerRequest) async -> ServerResponse {
        var response = await answer(request)
        if request.values("Accept").contains(where: { $0.contains("application/problem+json") }) {
            response.explainForPrograms()
        }
        response.set("Cache-Control", "no-store")
        response.set("X-Content-Type-Options", "nosniff")
        // Pages bring their own.
        for (name, value) in Self.fields where response.value(name) == nil { response.append(name, value) }
        return response
    }

    private func answer(_ request: ServerRequest) async -> ServerResponse {
        switch table.match(request) {
        case .route(let handler, let parameters): return await handler(request, parameters)
        // A method that is not there is told from a path that is not to nobody.
        case .otherMethods: return Self.nothing(for: request)
        case .nothing: return door?.refusal(of: request) ?? Self.nothing(for: request)
        }
    }

    /// A page for a browser, text for programs.
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
