import Configuration
import Cryptography
import HTTPMessage
import HTTPServer
import Heimdallr
import WireText

/// Answers token requests where the upstream has `issue`: with a placeholder, for which no token is needed yet. Nothing is
/// forwarded.
enum IssuePhase {
    static func run(_ context: inout Context) -> Action {
        guard let rule = context.admitted.rule, rule.issues else { return .next }
        guard context.stream.request.head.methodKind == .post else { return .fail(Problem(.tokenRequestMethod)) }
        if context.exchange.request.awaitsWholeBody { return WholeBody.collect(&context) }
        guard let body = context.stream.wholeBody(upTo: rule.settings.maxReplayBytes) else {
            return .fail(Problem(.tokenRequestMalformed))
        }
        do throws(Problem) {
            return .answer(OwnAnswer(body: try answer(body, rule, &context)))
        } catch { return .fail(error) }
    }

    private static func answer(
        _ body: [UInt8], _ rule: UpstreamRule, _ context: inout Context
    ) throws(Problem) -> [UInt8] {
        let request = try context.stream.request.with { head, bytes throws(Problem) in
            try ProgramTokenRequest(head, bytes, body: body)
        }
        let values = rule.index.map { context.installed.plan.fixed[$0] } ?? []
        let entry = try choose(among: rule.settings.issue, request) { entry, part, text in
            guard rule.settings.issue[entry].secrets[part].source != nil else { return true }
            guard let text else { return false }
            return values[2 * entry + part]?.current()?.isText(text) ?? false
        }
        let seconds = entry.expiresIn.components.seconds
        guard let seal = context.installed.plan.placeholders?.seal,
            let placeholder = try? seal.seal(
                client: entry.client, caller: context.admitted.caller.identity, end: WallClock.now() + seconds)
        else { throw Problem(.internalError) }
        context.admitted.issued = entry.client
        return document(placeholder, seconds, request, entry)
    }

    /// Returns the first entry that fits.
    /// - Parameter has: whether this text is the entry's secret of that place, or the entry takes any.
    /// - Throws: the problem of the request that comes closest. An unknown ID and a wrong secret look the same.
    static func choose(
        among entries: [IssueSettings], _ request: ProgramTokenRequest,
        has: (_ entry: Int, _ secret: Int, _ text: String?) -> Bool
    ) throws(Problem) -> IssueSettings {
        let known = entries.indices.filter { index in
            request.senders.contains { $0.id == entries[index].clientID && has(index, 0, $0.secret) }
        }
        guard !known.isEmpty else { throw Problem(.tokenRequestClient) }
        let granted = known.filter { index in
            request.subject == entries[index].subject && has(index, 1, request.refreshToken)
        }
        guard !granted.isEmpty else { throw Problem(.tokenRequestGrant) }
        let fitting = granted.first { index in
            let scope = entries[index].scope
            return scope.isEmpty || request.scopes.allSatisfy(scope.contains)
        }
        guard let fitting else { throw Problem(.tokenRequestScope) }
        return entries[fitting]
    }

    /// Returns the answer of RFC 6749, section 5.1. Libraries demand a type, and whole seconds; MSAL looks for exactly the
    /// scope that it asked for.
    private static func document(
        _ placeholder: [UInt8], _ seconds: Int64, _ request: ProgramTokenRequest, _ entry: IssueSettings
    ) -> [UInt8] {
        var members: [JSON.Member] = [
            .init("access_token", .string(String(decoding: placeholder, as: UTF8.self))),
            .init("expires_in", .number(Int(seconds))),
        ]
        if entry.answer["token_type"] == nil { members.append(.init("token_type", .string("Bearer"))) }
        if let scope = request.scope { members.append(.init("scope", .string(scope))) }
        for (name, value) in entry.answer.sorted(by: { $0.key < $1.key }) { members.append(.init(name, JSON(value))) }
        var body: [UInt8] = []
        JSON.object(members).write(.compact, escaping: .required) { body.append($0) }
        return body
    }
}
