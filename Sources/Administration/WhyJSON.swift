import Heimdallr
import Reports
import WireText

extension WhyText {
    func json(_ route: RouteExplanation) -> JSON {
        .object(
            [.init("refused", .bool(isRefused(route))), .init("route", body(route))]
                + (model.sources.users.isEmpty
                    ? [] : [.init("users", JSON(model.sources.users))]))
    }

    private func body(_ route: RouteExplanation) -> JSON {
        switch route {
        case .refused(let status, let word, let detail):
            return .object([
                .init("kind", "refused"), .init("status", .number(status)), .init("type", .string(word)),
                .init("reason", .string(Sentence.plain(detail))),
            ])
        case .callers(let some, let others):
            return .object([
                .init("kind", "callers"), .init("callers", .array(some.map { body($0) })),
                .init("others", body(others)),
            ])
        case .unmatched(let destination, let https):
            return .object([
                .init("kind", "unmatched"), .init("destination", .string(destination)),
                .init("https", .string(https.rawValue)),
            ])
        case .tunnel(let destination):
            return .object([.init("kind", "tunnel"), .init("destination", .string(destination))])
        case .upstream(let route):
            var members: [JSON.Member] = [
                .init("kind", "upstream"), .init("rule", .string(route.rule)),
                .init("destination", .string(route.destination)), .init("client", JSON(route.client)),
                .init("put_on_as", .string(route.injection)), .init("unsigned", JSON(route.unsigned)),
                .init("https", .string(route.https.rawValue)),
            ]
            if let name = route.client, let client = model.sources.client(named: name) {
                let status = client.heimdallr.status()
                members += [
                    .init("state", .string(status.state.rawValue)), .init("expires_in_seconds", JSON(status.expiresIn)),
                    .init("last_error", JSON(status.lastError?.description)),
                ]
            }
            if let refusal = route.client.flatMap({ refusal(of: $0) }) {
                let answer = JSON.object([
                    .init("status", .number(refusal.status)), .init("title", .string(refusal.title)),
                    .init("login_url", JSON(refusal.loginURL)),
                ])
                members.append(.init("answer", answer))
            }
            return .object(members)
        }
    }
}
