import Configuration
import HTTPMessage
import WireText

/// The rule of a host that a refused request misses by least, for the refusal's text.
struct RuleMiss: Equatable {
    /// Index of the rule in the configuration.
    let upstream: Int
    let lack: Lack

    /// First condition of the rule that the request does not meet.
    enum Lack: Equatable {
        case path
        case method
        /// - Parameter had: words about the request's field, after "the request".
        case field(String, had: String)
    }
}

extension RouteTable.Candidates {
    /// Finds the rule that the request misses by least: by a field only, else by the method, else the one whose path
    /// begins like the request's. Among equal ones the most specific counts.
    /// - Parameter caller: only rules for this caller are named; `nil` for the operator, who sees all.
    /// - Returns: `nil` if no rule allows the caller.
    func miss(path: Span<UInt8>, _ head: RequestHead, _ bytes: Span<UInt8>, caller: Caller?) -> RuleMiss? {
        var best: (rule: Rule, rank: Int, common: Int)?
        for rule in rules {
            if let callers = rule.callers, let caller, !callers.admits(caller) { continue }
            let common = rule.path.map { Self.common($0, path) } ?? 0
            let hasPath = rule.path.map { PathRules.matches(prefix: $0, path: path) } ?? true
            let rank = hasPath ? rule.covers(path, bytes[head.method]) ? 2 : 1 : 0
            if let best, (best.rank, best.common) >= (rank, common) { continue }
            best = (rule, rank, common)
        }
        guard let (rule, rank, _) = best else { return nil }
        if rank < 2 { return RuleMiss(upstream: rule.upstream, lack: rank == 0 ? .path : .method) }
        guard let field = rule.fields.first(where: { !Self.meets($0, head, bytes) }) else { return nil }
        return RuleMiss(
            upstream: rule.upstream, lack: .field(field.rule.name, had: Self.words(field, head, bytes)))
    }

    private static func common(_ prefix: [UInt8], _ path: Span<UInt8>) -> Int {
        prefix.indices.first { $0 >= path.count || prefix[$0] != path[$0] } ?? prefix.count
    }

    /// Words about the request's field that does not meet the condition. Its value stands there unless it may be a secret.
    private static func words(
        _ condition: RouteTable.Condition, _ head: RequestHead, _ bytes: Span<UInt8>
    ) -> String {
        let found = head.fields.filter { bytes[$0.name].mayName(field: condition.plain) }
        guard let field = found.first else { return "has none" }
        guard found.count == 1, !field.isHopByHop, bytes[field.name].equalsIgnoringCase(condition.name) else {
            return "has it twice, as a hop-by-hop field, or under a name that a server may read as this one"
        }
        let isSecret = secrets.contains { condition.rule.name.contains($0) }
        return isSecret
            ? "has another value" : "has the value `\(ForeignText.printable(bytes[field.value].text, most: 64))`"
    }

    /// Parts of the names of fields that may hold a credential.
    private static let secrets = [
        "auth", "cookie", "credential", "key", "pass", "secret", "session", "signature", "token",
    ]
}
