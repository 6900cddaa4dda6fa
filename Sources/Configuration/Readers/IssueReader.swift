import WireText

/// Reads `issue` of an upstream: an entry, or a list of entries.
enum IssueReader {
    private static let key = "issue"
    private static let counts = 1...64

    static func read(_ section: Section) -> [IssueSettings] {
        section.tell(key, .oneOrMore(.section { _ = entry($0) }, counts))
        guard let node = section.node(key) else { return [] }
        guard counts.contains(node.elements.count) else {
            section.error(key, "write one entry or a list of up to \(counts.upperBound)")
            return []
        }
        return node.elements.enumerated().compactMap { index, element in
            let path = "\(section.path).issue" + (section.isList(key) ? "[\(index)]" : "")
            return Section(element, path: path, pattern: "upstreams.issue", section.diagnostics).flatMap(entry)
        }
    }

    private static func entry(_ section: Section) -> IssueSettings? {
        defer { section.finish() }
        let client = section.value("client", Grammar.nonempty)
        section.need("client", saying: "\(section.path): name the `client` whose token replaces the placeholder")
        var entry = IssueSettings(client: client ?? "", clientID: section.value("client_id", Grammar.nonempty) ?? "")
        entry.clientSecret = section.textOrSecret("client_secret", rule: InjectedValue.fieldValue)
        entry.refreshToken = section.textOrSecret("refresh_token", rule: InjectedValue.fieldValue)
        entry.scope = (section.list("scope", Grammar.scopes) ?? []).flatMap { $0 }
        entry.subject = section.value("subject", Grammar.nonempty)
        section.read("expires_in", into: &entry.expiresIn, Grammar.duration(.seconds(1)...Section.day))
        let members = section.mapping("answer", to: nil, .anything, name: member) { member, inner in
            inner.json(member.value, member.key)
        }
        entry.answer = Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
        // A secret that can't be read must not become "any".
        for (key, source) in entry.secrets where section.has(key) && source == nil { return nil }
        return client == nil ? nil : entry
    }

    private static let own = ["access_token", "expires_in", "scope", "refresh_token", "id_token", "error"]

    private static func member(_ name: String) throws(BadValue) -> String {
        guard !own.contains(name) else {
            throw BadValue("the proxy decides about `\(name)`: leave it out", quotes: false)
        }
        return try Grammar.nonempty(name)
    }
}
