import Heimdallr

// Rules across sections for `issue`, and for `require_placeholder: issued`.
extension Loader {
    func checkIssued() {
        let clients = Dictionary(configuration.clients.map { ($0.name, $0) }) { first, _ in first }
        let entries = upstreams.flatMap(\.settings.issue)
        let users = Set(upstreams.filter { $0.settings.takesIssued }.compactMap(\.settings.client))
        for upstream in upstreams where upstream.settings.takesIssued {
            guard let client = upstream.settings.client else {
                error(upstream, ".require_placeholder: `issued` stands for a client's token: write `client` too")
                continue
            }
            if !entries.contains(where: { $0.client == client }) {
                error(
                    upstream,
                    ".require_placeholder: nothing issues placeholders of \(client): name it in `issue` of the "
                        + "upstream with the token endpoint's path, or write another text than `issued`")
            }
        }
        for upstream in upstreams where !upstream.settings.issue.isEmpty {
            checkWay(upstream)
            for (index, entry) in upstream.settings.issue.enumerated() {
                let path = ".issue[\(index)]"
                guard let client = clients[entry.client] else {
                    let near = Suggestion.phrase(for: entry.client, among: configuration.clients.map(\.name))
                    let name = Section.shown(entry.client)
                    error(upstream, "\(path).client: there is no client \"\(name)\" under `clients`\(near)")
                    continue
                }
                if client.exchange?.subject == .caller {
                    error(
                        upstream, "\(path).client: \(entry.client) exchanges the program's own token, not a placeholder"
                    )
                }
                check(resolved(entry, client), of: client, at: path, in: upstream, users)
            }
            checkOrder(upstream, clients)
        }
        if !entries.isEmpty, configuration.store == .memory,
            let first = upstreams.first(where: { !$0.settings.issue.isEmpty })
        {
            diagnostics.warn(
                first.position,
                "\(first.path).issue: placeholders end with this process, because the store keeps no key: add `store` "
                    + "with `kind: file`")
        }
    }

    private func checkWay(_ upstream: UpstreamReader.Result) {
        let settings = upstream.settings
        if settings.client != nil || settings.injects || settings.placeholder != nil {
            error(upstream, ".issue: the proxy answers here, and nothing is forwarded: leave `client` and `inject` out")
        }
        if !settings.intercepts, settings.listen == nil {
            diagnostics.warn(
                upstream.position,
                "\(upstream.path).issue: programs ask a token endpoint by https, which the proxy does not see: write "
                    + "`intercept: true`, or `listen` for a base URL")
        }
    }

    private func check(
        _ entry: IssueSettings, of client: ClientSettings, at path: String, in upstream: UpstreamReader.Result,
        _ users: Set<String>
    ) {
        func warn(_ sentence: String) { diagnostics.warn(upstream.position, "\(upstream.path)\(path)\(sentence)") }
        if !users.contains(entry.client) {
            warn(": no upstream replaces its placeholders: write `require_placeholder: issued` at one with this client")
        }
        if entry.clientID.isEmpty {
            error(upstream, "\(path): write the `client_id` that the program sends: the client has none")
        }
        let foreign = client.scope.isEmpty ? [] : entry.scope.filter { !client.scope.contains($0) }
        if !foreign.isEmpty { warn(".scope: the client has no scope \(foreign.joined(separator: " "))") }
    }

    /// Warns of entries behind one that fits all of their requests.
    private func checkOrder(_ upstream: UpstreamReader.Result, _ clients: [String: ClientSettings]) {
        let entries = upstream.settings.issue.map { entry in clients[entry.client].map { resolved(entry, $0) } ?? entry
        }
        for (index, entry) in entries.enumerated() {
            guard let earlier = entries[..<index].firstIndex(where: { $0.covers(entry) }) else { continue }
            diagnostics.warn(
                upstream.position,
                "\(upstream.path).issue[\(index)]: no request reaches it, because issue[\(earlier)] fits them all: make "
                    + "`client_id`, `client_secret`, `scope` or `subject` differ, or put it first")
        }
    }

    /// Returns the entry with what it takes from its client.
    private func resolved(_ entry: IssueSettings, _ client: ClientSettings) -> IssueSettings {
        var entry = entry
        if entry.clientID.isEmpty { entry.clientID = client.clientID }
        if entry.scope.isEmpty { entry.scope = client.scope }
        return entry
    }

    mutating func bindIssued() {
        let clients = Dictionary(configuration.clients.map { ($0.name, $0) }) { first, _ in first }
        for index in configuration.upstreams.indices where !configuration.upstreams[index].issue.isEmpty {
            configuration.upstreams[index].issue = configuration.upstreams[index].issue.map { entry in
                clients[entry.client].map { resolved(entry, $0) } ?? entry
            }
        }
    }
}
