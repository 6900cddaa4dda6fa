/// The rules of a configuration by the upstream and client whose traffic they share.
struct RuleTable: Sendable {
    private struct Key: Hashable {
        let upstream: String
        let client: String?
    }

    private var rules: [Key: [AdministrationSources.Rule]] = [:]

    init(_ rules: [AdministrationSources.Rule] = []) {
        for rule in rules { self.rules[Key(upstream: rule.upstream, client: rule.client), default: []].append(rule) }
    }

    /// Returns the rules of an upstream and client in the order of the configuration.
    func rules(of upstream: String, _ client: String?) -> [AdministrationSources.Rule] {
        rules[Key(upstream: upstream, client: client)] ?? []
    }
}
