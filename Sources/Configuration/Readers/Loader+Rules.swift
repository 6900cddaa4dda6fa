import HTTPMessage

// Rules across sections of the configuration. First all are checked, then what follows from them is set.
extension Loader {
    func checkAcrossSections(_ section: Section) {
        checkListeners()
        checkPrivateNetworks(section)
        checkClients(section)
        checkCallers()
        checkTies()
        checkLoops(section)
        checkInterception(section)
        checkCertificates()
    }

    /// - Parameter position: position of the entry or of a key in the entry.
    func error(
        _ upstream: UpstreamReader.Result, at position: KeyPath<UpstreamReader.Result, Position> = \.position,
        _ message: String
    ) {
        diagnostics.error(upstream[keyPath: position], upstream.path + message)
    }

    private func checkListeners() {
        for (index, listener) in listeners.enumerated() {
            checkReach(listener)
            if let earlier = listeners[..<index].first(where: { $0.collides(with: listener) }) {
                diagnostics.error(
                    listener.position,
                    "\(listener.name)\(listener.address) is taken by \(earlier.address) in \(earlier.position.inWords): "
                        + "write another \(listener.address.isUnix ? "path" : "port")")
            }
        }
    }

    /// Refuses a listener or an admin port that other machines can use without credentials.
    private func checkReach(_ listener: Listener) {
        guard !listener.isLoopback else { return }
        let (harm, advice): (String, String)
        switch listener.kind {
        case .administration(let hasToken):
            guard !hasToken else { return }
            (harm, advice) = ("read the status", "or set `token` under `admin`")
        case .programs:
            let proxy = configuration.proxy
            guard !proxy.open, proxy.users.isEmpty, listener.tls?.clientCAFile == nil else { return }
            (harm, advice) = ("use the tokens", "\(openSpelling) if that is meant")
        }
        let fault = "\(listener.name)\(listener.address) is not loopback, so other machines could \(harm)"
        diagnostics.error(listener.position, "\(fault): listen on 127.0.0.1, \(advice)")
    }

    private var openSpelling: String {
        diagnostics.variables.isEmpty
            ? "set `users` under `proxy`, or write `open: true` there"
            : "or write " + diagnostics.spelling(of: "open", in: "proxy", as: "true")
    }

    private func checkClients(_ section: Section) {
        let names = configuration.clients.map(\.name)
        for upstream in upstreams {
            guard let client = upstream.settings.client, clientPositions[client] == nil else { continue }
            let near = Suggestion.phrase(for: client, among: names)
            error(
                upstream, at: \.clientPosition,
                ".client: there is no client \"\(Section.shown(client))\" under `clients`"
                    + (near.isEmpty ? ": add it, or leave `client` out to forward unsigned" : near))
        }
        checkProofs()
        checkAutoUsers()
        checkSubjects()
        checkSecretClients()
        checkExchanges()
        checkIssued()
        checkLogins(section)
        // After an error, an upstream that could not be read may use a client that seems unused.
        guard !diagnostics.hasErrors else { return }
        let used = Set(upstreams.compactMap(\.settings.client) + diagnostics.clientUses.map(\.name))
        for client in configuration.clients where !used.contains(client.name) && !client.isExportable {
            diagnostics.warn(
                clientPositions[client.name] ?? .whole, "clients.\(client.name): no upstream uses this client")
        }
    }

    /// Sets what upstreams get from their clients: DPoP proofs, and the client certificate to which the tokens are bound
    /// (RFC 8705 section 3).
    mutating func bindUpstreams() {
        let clients = Dictionary(configuration.clients.map { ($0.name, $0) }) { first, _ in first }
        for index in configuration.upstreams.indices {
            guard let client = configuration.upstreams[index].client.flatMap({ clients[$0] }) else { continue }
            configuration.upstreams[index].provesPossession = client.dpop != .off
            guard client.certificateBound, let certificate = client.tls.certFile else { continue }
            if configuration.upstreams[index].tls.certFile == nil {
                configuration.upstreams[index].tls.certFile = certificate
                configuration.upstreams[index].tls.keyFile = client.tls.keyFile
            }
            configuration.upstreams[index].usesOtherCertificate =
                configuration.upstreams[index].tls.certFile != certificate
        }
    }

    /// Refuses to inject tokens that need DPoP proofs into other fields than Authorization, because only Authorization
    /// has a scheme for such tokens (RFC 9449, section 7.1).
    private func checkProofs() {
        let bound = Set(configuration.clients.filter { $0.dpop != .off }.map(\.name))
        for upstream in upstreams {
            guard let client = upstream.settings.client, bound.contains(client) else { continue }
            for injection in upstream.settings.injections where injection.takesToken {
                if case .header(let name, let scheme, _) = injection, name.lowercased() == "authorization",
                    ["bearer", "dpop"].contains(scheme.lowercased())
                {
                    continue
                }
                error(
                    upstream,
                    ": the client \"\(client)\" has `dpop`, and such tokens go into Authorization only: "
                        + "leave `header`, `scheme` and `query` out for the token, or leave `dpop` out at the client")
            }
        }
    }

    /// Refuses `require_placeholder`, and `on_existing` other than `replace`, where the program's token is exchanged.
    private func checkExchanges() {
        let names = configuration.clients.filter { $0.exchange?.subject == .caller }.map(\.name)
        for client in configuration.clients where client.isExportable && names.contains(client.name) {
            diagnostics.error(
                clientPositions[client.name] ?? .whole,
                "clients.\(client.name).exportable: with `subject_token: caller` each token belongs to the program that "
                    + "sends its own: leave `exportable` out")
        }
        for upstream in upstreams {
            guard let client = upstream.settings.client, names.contains(client) else { continue }
            if upstream.settings.placeholder != nil {
                error(
                    upstream, at: \.clientPosition,
                    ".require_placeholder: the client \(client) exchanges the program's own token "
                        + "(`subject_token: caller`), not a placeholder: leave `require_placeholder` out")
            }
            guard upstream.settings.onExisting != .replace else { continue }
            error(
                upstream, at: \.clientPosition,
                ".on_existing: the client \(client) exchanges the program's own token "
                    + "(`subject_token: caller`), so it can't be kept or refused: leave `on_existing` out")
        }
    }

    private func checkCallers() {
        let proxy = configuration.proxy
        let users = Array(proxy.users.keys)
        for upstream in upstreams {
            let callers = upstream.settings.callers
            for user in callers.users where proxy.users[user] == nil {
                let near = Suggestion.phrase(for: user, among: users)
                error(
                    upstream,
                    ".callers: there is no user \"\(Section.shown(user))\" under `proxy.users`"
                        + (near.isEmpty ? ": add it there, or leave it out here" : near))
            }
            for listener in callers.listeners where !proxy.listen.contains(where: { $0.endpoint == listener.endpoint })
            {
                error(
                    upstream, ".callers: \(listener) is not one of `proxy.listen`: write an address from that list")
            }
            let ways = callers.listeners.isEmpty ? proxy.listen : callers.listeners
            let known = ways.map { proxy.listenerTLS[$0.endpoint] } + [upstream.settings.listenerTLS]
            if !callers.certificates.isEmpty, !known.contains(where: { $0?.clientCAFile != nil }) {
                error(
                    upstream,
                    ".callers: `certificates` are known only at listeners with `client_ca_file`: add it under "
                        + "`tls` of a listener, in `proxy.listen` or here")
            }
            if !callers.uids.isEmpty, !(ways + [upstream.settings.listen].compactMap(\.self)).contains(where: \.isUnix)
            {
                error(
                    upstream,
                    ".callers: `uids` are known on Unix sockets only: add one, such as "
                        + "unix:/run/heimdallr-proxy.sock, to "
                        + (callers.listeners.isEmpty ? "`proxy.listen`" : "`listeners` and `proxy.listen`"))
            }
        }
    }

    /// Requires `admin` for clients with a login. Warns if a login is lost when the process ends.
    private func checkLogins(_ section: Section) {
        for client in configuration.clients where client.needsLogin {
            let position = clientPositions[client.name] ?? .whole
            let path = client.auto == nil ? "clients.\(client.name)" : "the client of \(client.name)"
            if !section.has("admin") {
                diagnostics.error(
                    position, "\(path): a person has to log in, which requires `admin`: add `admin: {}`"
                )
            }
            if let port = configuration.foreignCallbackPort(of: client) {
                diagnostics.warn(
                    position,
                    "\(path): redirect_uri leads to port \(port) of this machine, where the admin port does not listen: write "
                        + "the admin port there, write `url: http://localhost:\(port)` under `admin` if that port is "
                        + "forwarded here, or sign in with heimdallr-proxy login --paste")
            }
            // A store does not help with the playground: its server ends with the process, and forgets the login.
            if configuration.store == .memory, !configuration.playground {
                diagnostics.warn(
                    position,
                    "\(path): a person has to log in again after each restart: add `store` with `kind: file`")
            }
        }
    }

    /// Reports upstreams that can't show the client certificate to which their tokens are bound (RFC 8705 section 3).
    private func checkCertificates() {
        let clients = configuration.clients.filter(\.certificateBound).map { ($0.name, $0) }
        let bound = Dictionary(clients) { first, _ in first }
        for upstream in upstreams {
            guard let client = upstream.settings.client.flatMap({ bound[$0] }), let certificate = client.tls.certFile
            else { continue }
            if upstream.settings.url?.scheme == .http {
                error(
                    upstream, at: \.urlPosition,
                    ": the tokens of clients.\(client.name) are bound to its certificate, which can't be "
                        + "shown over http://: write https://")
            }
            guard let own = upstream.settings.tls.certFile, own != certificate else { continue }
            diagnostics.warn(
                upstream.position,
                "\(upstream.path): the tokens of clients.\(client.name) are bound to its certificate, but this "
                    + "upstream has another certificate: leave out `tls.cert_file` and `tls.key_file`")
        }
    }

    private func checkTies() {
        // Upstreams by each of their paths: only those with a common path can tie.
        var places: [String: [Int]] = [:]
        for (index, upstream) in upstreams.enumerated() {
            let keys = upstream.settings.paths(of: upstream.settings.host)
            let earlier = Set(keys.flatMap { places[$0] ?? [] }).sorted()
            for key in keys { places[key, default: []].append(index) }
            guard let place = earlier.first(where: { upstreams[$0].settings.ties(with: upstream.settings) }) else {
                continue
            }
            error(
                upstream,
                ": \(upstream.settings.host) matches the same requests as the upstream in "
                    + "\(upstreams[place].position.inWords): make `host`, `paths`, `methods` or `callers` differ")
        }
    }

    private func checkLoops(_ section: Section) {
        for upstream in upstreams {
            if let url = upstream.settings.url {
                refuse(
                    "\(url)", at: upstream.urlPosition, "\(upstream.path): \(url) leads back to this proxy",
                    "the address of the API in `url`")
            }
            refuse(upstream.settings.proxy, at: upstream.position, upstream.path)
        }
        if let tracing = configuration.tracing {
            refuse(
                tracing.endpoint, at: section.position(of: "tracing"), "tracing: `otlp` leads back to this proxy",
                "the address of the collector")
        }
        for client in configuration.clients {
            let position = clientPositions[client.name] ?? .whole
            refuse(client.proxy, at: position, "clients.\(client.name)")
            for (key, url) in client.endpoints {
                refuse(
                    url, at: position, "clients.\(client.name): `\(key)` leads back to this proxy",
                    "the address of the authorization server")
            }
        }
    }

    private func refuse(_ proxy: NextProxy, at position: Position, _ path: String) {
        guard case .url(let url, _) = proxy else { return }
        refuse(url, at: position, "\(path): `proxy` is this proxy itself", "the address of the next proxy")
    }

    /// Reports a URL that leads to a listener of this configuration.
    private func refuse(_ url: String, at position: Position, _ fault: String, _ advice: String) {
        guard let parts = try? WebURL(url, allowing: [.userInfo, .fragment]),
            let listener = listeners.first(where: { $0.answers(host: parts.authority.host.bare, port: parts.port) })
        else { return }
        diagnostics.error(position, "\(fault), which listens on \(listener.address): write \(advice)")
    }
}
