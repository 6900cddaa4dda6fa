import Heimdallr

// Rules about `client: auto`, for an API that names its authorization server.
extension Loader {
    /// Adds the client of `client: auto`. Upstreams of the same host share the client.
    mutating func add(_ auto: ClientSettings, _ upstream: UpstreamReader.Result) {
        guard let known = configuration.clients.first(where: { $0.name == auto.name }) else {
            clientPositions[auto.name] = upstream.clientPosition
            configuration.clients.append(auto)
            return
        }
        if known.auto == nil {
            diagnostics.error(
                upstream.clientPosition,
                "\(upstream.path).client: `clients` has a client \(auto.name) already: write another name there, or "
                    + "write `client: \(auto.name)` here")
        } else if known != auto {
            diagnostics.error(
                upstream.position,
                "\(upstream.path): the upstreams of \(upstream.settings.host) with `client: auto` share one client: "
                    + "write the same `url` and `auto` in each")
        }
    }

    /// Refuses the client of `client: auto` at other upstreams. An API chose the client's server, so the tokens are
    /// only for that API.
    func checkAutoUsers() {
        let names = Set(configuration.clients.filter { $0.auto != nil }.map(\.name))
        for upstream in upstreams where upstream.auto == nil {
            guard let name = upstream.settings.client, names.contains(name) else { continue }
            diagnostics.error(
                upstream.clientPosition,
                "\(upstream.path).client: \(name) is the client of `client: auto` at another upstream, and "
                    + "its tokens are only for that API: write `client: auto` here too, or another name")
        }
    }

    /// Checks that the client of `subject_token` gets an id token: a person signs in to it, and its scope has `openid`.
    func checkSubjects() {
        for client in configuration.clients {
            guard let name = client.auto?.subjectClient else { continue }
            let subject = configuration.clients.first { $0.name == name }
            guard
                subject?.needsLogin != true || subject?.scope.contains("openid") != true || subject?.usesIDToken != true
            else { continue }
            diagnostics.error(
                clientPositions[client.name] ?? .whole,
                "auto.subject_token: \"\(Section.shown(name))\" has to be a client under `clients` that a person signs in to, "
                    + "with `openid` in its scope, and without `id_token: off`")
        }
    }

    /// Checks the clients whose tokens secrets are asked with: they exist, and need no such secret themselves.
    func checkSecretClients() {
        for (name, position, label) in diagnostics.clientUses {
            guard let client = configuration.clients.first(where: { $0.name == name }) else {
                let near = Suggestion.phrase(for: name, among: configuration.clients.map(\.name))
                diagnostics.error(position, "\(label)there is no client \"\(Section.shown(name))\"\(near)")
                continue
            }
            let sources = client.secrets + [client.clientKey, client.clientAssertion].compactMap(\.self)
            guard sources.contains(where: { $0.client != nil }) else { continue }
            diagnostics.error(
                position, "\(label)this client's own secrets are asked with the token of a client: write another one")
        }
    }

    func checkPrivateNetworks(_ section: Section) {
        let proxy = configuration.proxy
        guard !proxy.privateNetworks.isEmpty, proxy.unmatched == .reject, !proxy.tunnels.contains(.any),
            !configuration.clients.contains(where: { $0.auto != nil })
        else { return }
        diagnostics.warn(
            section.section("proxy")?.position(of: "private_networks") ?? .whole,
            "proxy.private_networks: this has no effect without `unmatched: forward`, `tunnels: [\"*\"]` or `client: auto`"
        )
    }
}
