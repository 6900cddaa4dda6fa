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
            return Response.plain(
                .serviceUnavailable,
                "There is no token: \(error).\nWhat to do: \(Sentence.ended(Sentence.plain(advice)))\n")
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
        let why = WhyText(office: office)
        return Response.plain(.ok, why.text(route)).marked(bad: why.isRefused(route))
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
