import HTTPTypes
import Heimdallr
import Hummingbird

/// What the admin socket answers: all that the port does, and what only our own user may have.
enum CommandRoutes {
    static func router(_ office: Office) -> Router<AdminContext> {
        let router = Router(context: AdminContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: AnswerMiddleware())
        PageRoutes.addProbes(to: router, office)
        PageRoutes.addReading(to: router.group(), office)
        router.get("token/:client") { _, context in await token(office, context) }
        router.post("logout/:client") { request, context in
            await logout(office, context, isLocal: request.asksFor("local"))
        }
        LoginCommandRoutes(office: office).add(to: router)
        router.get("why") { request, _ in await why(office, request) }
        return router
    }

    /// The one answer that holds a token: over the socket, for people who try things out.
    private static func token(_ office: Office, _ context: AdminContext) async -> Response {
        guard let client = office.client(context) else { return unknownClient(office) }
        do throws(HeimdallrError) {
            let token = try await client.heimdallr.accessToken(waiting: .seconds(20))
            return Response.plain(.ok, token.value.revealed + "\n")
        } catch {
            let advice = Advice.sentence(for: error, signIn: office.signIn(of: client))
            return Response.plain(.serviceUnavailable, "There is no token: \(error).\nWhat to do: \(advice).\n")
        }
    }

    private static func logout(_ office: Office, _ context: AdminContext, isLocal: Bool) async -> Response {
        guard let client = office.client(context) else { return unknownClient(office) }
        let report = await client.heimdallr.logOut(locally: isLocal)
        return Response.plain(
            report.isComplete ? .ok : .badGateway, LogoutText.text(report, client: client.heimdallr.name))
    }

    private static func why(_ office: Office, _ request: Request) async -> Response {
        let query = request.uri.queryParameters
        guard let url = query["url"].map(String.init) else {
            return Response.plain(.badRequest, "Give the URL: ?method=GET&url=http://…\n")
        }
        let method = query["method"].map(String.init) ?? "GET"
        let route = await office.sources.route(method, url)
        return Response.plain(.ok, WhyText.text(route, office)).marked(bad: WhyText.isRefused(route, office))
    }

    static func unknownClient(_ office: Office) -> Response {
        let names = office.sources.clients.map(\.heimdallr.name).sorted().joined(separator: ", ")
        return Response.plain(
            .notFound,
            names.isEmpty
                ? "The configuration has no clients.\n"
                : "The configuration has no client of that name. Its clients: \(names).\n")
    }
}

/// What `why` says.
enum WhyText {
    /// Whether the proxy would answer by itself, whoever asks.
    static func isRefused(_ route: RouteReport, _ office: Office) -> Bool {
        switch route {
        case .refused: return true
        case .callers(let some, let others): return (some + [others]).allSatisfy { isRefused($0, office) }
        case .upstream(_, _, let name, _):
            guard let name, let client = office.sources.client(named: name) else { return false }
            return client.heimdallr.status().state.isWithoutHope
        }
    }

    static func text(_ route: RouteReport, _ office: Office) -> String {
        switch route {
        case .refused(let status, let reason):
            return "The proxy itself would answer \(status): \(reason)\n"
        case .callers(let some, let others):
            return "It depends on who asks.\n\n" + some.map { Self.text($0, office) + "\n" }.joined()
                + "Everybody else:\n\n" + Self.text(others, office)
        case .upstream(let rule, let destination, let name, let injection):
            var text = "rule         \(rule)\ndestination  \(destination)\n"
            guard let name, let client = office.sources.client(named: name) else {
                return text + "client       none: forwarded unsigned\n"
            }
            let status = client.heimdallr.status()
            text += "client       \(name) (\(status.grantType)) \(status.state.inWords)\nput on as    \(injection)\n"
            if status.state.isWithoutHope, !status.isTokenRefused {
                text += "answer       an error of the proxy, for want of a token\n"
            }
            if let since = status.sinceLastSuccess { text += "token from   \(StatusPage.words(since)) ago\n" }
            if let left = status.expiresIn { text += "expires in   \(StatusPage.words(left))\n" }
            if let reason = status.needsAuthenticationBecause { text += "because      \(reason)\n" }
            if let error = status.lastError {
                text +=
                    "last error   \(error)\nwhat to do   \(Advice.sentence(for: error, signIn: office.signIn(of: client)))\n"
            }
            return text
        }
    }
}

extension HeimdallrStatus.State {
    /// A request that wants the token now would get none, however long it waited.
    fileprivate var isWithoutHope: Bool {
        switch self {
        case .backingOff, .needsAuthentication, .stopped: true
        case .starting, .ready, .fetching, .idle: false
        }
    }
}
