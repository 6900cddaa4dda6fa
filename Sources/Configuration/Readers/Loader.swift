import HTTPMessage

/// Converts the tree to the checked configuration: reads every section, then checks rules across sections.
struct Loader {
    private let diagnostics: Diagnostics
    private var configuration = Configuration()
    private var listeners: [Listener] = []
    private var clientPositions: [String: Position] = [:]
    private var upstreams: [UpstreamReader.Result] = []

    static func load(
        _ root: Node?, _ diagnostics: Diagnostics
    ) throws(ConfigurationError) -> (configuration: Configuration, warnings: [ConfigurationError.Problem]) {
        var loader = Loader(diagnostics: diagnostics)
        if let root { loader.read(root) }
        guard !diagnostics.hasErrors else { throw diagnostics.failure }
        return (loader.configuration, diagnostics.warnings)
    }

    private init(diagnostics: Diagnostics) { self.diagnostics = diagnostics }

    private mutating func read(_ root: Node) {
        guard case .mapping(let entries) = root.content else {
            guard !root.isNull else {
                diagnostics.error(.whole, "the file is empty: write at least `upstreams:`; see the documentation")
                return
            }
            let missing = root.missingColon
            diagnostics.error(
                missing?.position ?? root.position,
                "write `key: value` lines at the top of the file, not \(root.kind)\(missing?.advice ?? "")")
            return
        }
        configuration.variables = VariableNames.inside(root)
        let section = Section(entries, path: "", pattern: "", at: .whole, diagnostics)
        readSections(section)
        // A program with these variables receives the same credentials.
        if upstreams.contains(where: { $0.settings.usesContainerCredentials }) {
            configuration.variables.formUnion(SigV4Reader.variables)
        }
        section.finish()
        checkListeners()
        checkClients(section)
        checkCallers()
        checkTies()
        checkLoops(section)
        bindCertificates()
        for name in ["store", "audit", "admin"] { diagnostics.note(opened: name, at: section.position(of: name)) }
        for listener in listeners { diagnostics.note(opened: listener.text, at: listener.position) }
        configuration.keyUses = diagnostics.keyUses
    }

    /// Outline of the file's top level.
    static func outline(_ section: Section) {
        var loader = Loader(diagnostics: section.diagnostics)
        loader.readSections(section)
    }

    private mutating func readSections(_ section: Section) {
        if let proxy = section.section("proxy") {
            (configuration.proxy, listeners) = proxy.proxySettings()
        } else {
            listeners = Listener.defaults
        }
        if let admin = section.section("admin") {
            let (settings, listener) = admin.adminSettings()
            configuration.admin = settings
            listeners.append(listener)
        }
        if let log = section.section("log") { configuration.log = log.logSettings() }
        if let tls = section.section("tls") { configuration.trustAnchorsFile = tls.trustAnchors() }
        if let store = section.section("store") { configuration.store = store.storeSettings() }
        if let hooks = section.section("hooks") { configuration.hooks = hooks.hooksSettings() }
        configuration.audit = section.auditSettings()
        if let tracing = section.section("tracing") { configuration.tracing = tracing.tracingSettings() }
        section.read("playground", into: &configuration.playground, Grammar.boolean)
        readClients(section)
        readUpstreams(section)
    }

    // MARK: Lists

    private mutating func readClients(_ section: Section) {
        section.tell("clients", .names(Grammar.nameKind, .section { _ = ClientReader.read("", $0) }))
        guard let node = section.node("clients") else { return }
        guard case .mapping(let entries) = node.content else {
            section.error("clients", "write a mapping of client names to their settings, not \(node.kind)")
            return
        }
        for entry in entries {
            guard Grammar.isName(entry.key) else {
                diagnostics.error(
                    entry.keyPosition,
                    "clients: write a name of letters, digits, dots, - and _, not \"\(Section.shown(entry.key))\"")
                continue
            }
            clientPositions[entry.key] = entry.keyPosition
            let path = "clients.\(entry.key)"
            guard case .mapping(let keys) = entry.value.content else {
                let missing = entry.value.missingColon
                diagnostics.error(
                    missing?.position ?? entry.keyPosition,
                    "\(path): write a mapping of `key: value` lines, not \(entry.value.kind)\(missing?.advice ?? "")")
                continue
            }
            let client = Section(keys, path: path, pattern: "clients.*", at: entry.keyPosition, diagnostics)
            configuration.clients.append(ClientReader.read(entry.key, client))
        }
    }

    private mutating func readUpstreams(_ section: Section) {
        section.tell("upstreams", .list(.section { _ = UpstreamReader.read($0) }, 0...Int.max))
        guard let node = section.node("upstreams") else {
            if !section.has("upstreams"), configuration.proxy.unmatched == .reject {
                diagnostics.warn(.whole, "there are no `upstreams`: every request will be refused")
            }
            return
        }
        guard case .sequence(let elements) = node.content else {
            section.error("upstreams", "write a list (`- host: api.example.com`), not \(node.kind)")
            return
        }
        for (index, element) in elements.enumerated() {
            guard
                let upstream = Section(
                    element, path: "upstreams[\(index)]", pattern: "upstreams", diagnostics),
                let result = UpstreamReader.read(upstream)
            else { continue }
            upstreams.append(result)
            configuration.upstreams.append(result.settings)
            if let listener = result.listener { listeners.append(listener) }
        }
    }

    // MARK: Across sections

    private func checkListeners() {
        for (index, listener) in listeners.enumerated() {
            switch listener.kind {
            case .administration(hasToken: true): break
            case .administration(hasToken: false): checkAdmin(listener)
            case .programs: checkPrograms(listener)
            }
            if let earlier = listeners[..<index].first(where: { $0.collides(with: listener) }) {
                diagnostics.error(
                    listener.position,
                    "\(listener.name)\(listener.text) is taken by \(earlier.text) in \(earlier.position.inWords): "
                        + "write another \(listener.address.isUnix ? "path" : "port")")
            }
        }
    }

    private func checkPrograms(_ listener: Listener) {
        guard !listener.isLoopback, !configuration.proxy.open, configuration.proxy.users.isEmpty else { return }
        diagnostics.error(
            listener.position,
            "\(listener.name)\(listener.text) is not loopback, so other machines could use the tokens: listen "
                + "on 127.0.0.1, \(openSpelling) if that is meant")
    }

    /// Refuses an admin port without a token that is not on loopback: it shows internals and starts logins.
    private func checkAdmin(_ listener: Listener) {
        guard !listener.isLoopback else { return }
        diagnostics.error(
            listener.position,
            "\(listener.name)\(listener.text) is not loopback, so other machines could read the status: listen on "
                + "127.0.0.1, or set `token` under `admin`")
    }

    private var openSpelling: String {
        diagnostics.variables.isEmpty
            ? "set `users` under `proxy`, or write `open: true` there"
            : "or write " + diagnostics.spelling(of: "open", in: "proxy", as: "true")
    }

    private mutating func checkClients(_ section: Section) {
        let names = configuration.clients.map(\.name)
        for upstream in upstreams {
            guard let client = upstream.settings.client, clientPositions[client] == nil else { continue }
            let near = Suggestion.phrase(for: client, among: names)
            diagnostics.error(
                upstream.clientPosition,
                "\(upstream.path).client: there is no client \"\(Section.shown(client))\" under `clients`"
                    + (near.isEmpty ? ": add it, or leave `client` out to forward unsigned" : near))
        }
        bindTokens()
        checkExchanges()
        checkLogins(section)
        // An upstream that could not be read may use it.
        guard !diagnostics.hasErrors else { return }
        for name in names where !upstreams.contains(where: { $0.settings.client == name }) {
            diagnostics.warn(clientPositions[name] ?? .whole, "clients.\(name): no upstream uses this client")
        }
    }

    /// Tokens that are bound to a key go into Authorization with their own scheme, and into no other place (RFC 9449,
    /// section 7.1).
    private mutating func bindTokens() {
        let bound = Set(configuration.clients.filter { $0.dpop != .off }.map(\.name))
        for (index, upstream) in upstreams.enumerated() {
            guard let client = upstream.settings.client, bound.contains(client),
                index < configuration.upstreams.count
            else { continue }
            configuration.upstreams[index].provesPossession = true
            for injection in upstream.settings.injections where injection.takesToken {
                if case .header(let name, let scheme, _) = injection, name.lowercased() == "authorization",
                    scheme.lowercased() == "bearer" || scheme.lowercased() == "dpop"
                {
                    continue
                }
                diagnostics.error(
                    upstream.position,
                    "\(upstream.path): the client \"\(client)\" has `dpop`, and such tokens go into Authorization only: "
                        + "leave `header`, `scheme` and `query` out for the token, or `dpop` there")
            }
        }
    }

    /// The program's own token is always exchanged: it is neither kept nor refused.
    private func checkExchanges() {
        let names = configuration.clients.filter { $0.exchange?.subject == .caller }.map(\.name)
        for upstream in upstreams {
            guard let client = upstream.settings.client, names.contains(client) else { continue }
            if upstream.settings.placeholder != nil {
                diagnostics.error(
                    upstream.clientPosition,
                    "\(upstream.path).require_placeholder: the client \(client) exchanges the program's own token "
                        + "(`subject_token: caller`), which a placeholder is not: leave `require_placeholder` out")
            }
            guard upstream.settings.onExisting != .replace else { continue }
            diagnostics.error(
                upstream.clientPosition,
                "\(upstream.path).on_existing: the client \(client) exchanges the program's own token "
                    + "(`subject_token: caller`), so it can't be kept or refused: leave `on_existing` out")
        }
    }

    /// Checks that every caller that an upstream names can call.
    private func checkCallers() {
        let proxy = configuration.proxy
        let users = Array(proxy.users.keys)
        for upstream in upstreams {
            let callers = upstream.settings.callers
            for user in callers.users where proxy.users[user] == nil {
                let near = Suggestion.phrase(for: user, among: users)
                diagnostics.error(
                    upstream.position,
                    "\(upstream.path).callers: there is no user \"\(Section.shown(user))\" under `proxy.users`"
                        + (near.isEmpty ? ": add it there, or leave it out here" : near))
            }
            for listener in callers.listeners where !proxy.listen.contains(where: { $0.place == listener.place }) {
                diagnostics.error(
                    upstream.position,
                    "\(upstream.path).callers: \(listener) is not one of `proxy.listen`: write an address as it stands "
                        + "there")
            }
            let ways = callers.listeners.isEmpty ? proxy.listen : callers.listeners
            if !callers.uids.isEmpty, !(ways + [upstream.settings.listen].compactMap(\.self)).contains(where: \.isUnix)
            {
                diagnostics.error(
                    upstream.position,
                    "\(upstream.path).callers: `uids` are known on Unix sockets only: add one, such as "
                        + "unix:/run/heimdallr-proxy.sock, to "
                        + (callers.listeners.isEmpty ? "`proxy.listen`" : "`listeners` and `proxy.listen`"))
            }
        }
    }

    /// Checks that a person can log in, and warns when a login does not outlive the process.
    private func checkLogins(_ section: Section) {
        for client in configuration.clients where client.needsLogin {
            let position = clientPositions[client.name] ?? .whole
            if !section.has("admin") {
                diagnostics.error(
                    position,
                    "clients.\(client.name): somebody has to log in, and without `admin` there is no way to: add "
                        + "`admin: {}`")
            }
            // Nothing of the playground outlives the process.
            if configuration.store == .memory, !configuration.playground {
                diagnostics.warn(
                    position,
                    "clients.\(client.name): who logs in has to do so again after each restart: add `store` with "
                        + "`kind: file`")
            }
        }
    }

    /// RFC 8705 section 3: a bound token needs the client certificate of its token request.
    private mutating func bindCertificates() {
        for (index, upstream) in upstreams.enumerated() {
            let client = configuration.clients.first { $0.name == upstream.settings.client }
            guard let client, client.certificateBound, let certificate = client.tls.certFile else { continue }
            if upstream.settings.url?.scheme == .http {
                diagnostics.error(
                    upstream.urlPosition,
                    "\(upstream.path): the tokens of clients.\(client.name) are bound to its certificate, which can't be "
                        + "shown over http://: write https://")
            }
            guard let own = upstream.settings.tls.certFile else {
                configuration.upstreams[index].tls.certFile = certificate
                configuration.upstreams[index].tls.keyFile = client.tls.keyFile
                continue
            }
            guard own != certificate else { continue }
            configuration.upstreams[index].showsForeignCertificate = true
            diagnostics.warn(
                upstream.position,
                "\(upstream.path): the tokens of clients.\(client.name) are bound to its certificate, and another one is "
                    + "shown here: leave out `tls.cert_file` and `tls.key_file`")
        }
    }

    private func checkTies() {
        for (index, upstream) in upstreams.enumerated() {
            guard let earlier = upstreams[..<index].first(where: { $0.settings.ties(with: upstream.settings) }) else {
                continue
            }
            diagnostics.error(
                upstream.position,
                "\(upstream.path): \(upstream.settings.host) matches the same requests as the upstream in "
                    + "\(earlier.position.inWords): make `host`, `paths`, `methods` or `callers` differ")
        }
    }

    private func checkLoops(_ section: Section) {
        for upstream in upstreams {
            guard let url = upstream.settings.url else { continue }
            let port = url.authority.port ?? (url.scheme == .https ? 443 : 80)
            guard let listener = answering(host: url.authority.host, port: port) else { continue }
            diagnostics.error(
                upstream.urlPosition,
                "\(upstream.path): \(url) leads back to this proxy, which listens on \(listener.text): write the "
                    + "address of the API in `url`")
        }
        for upstream in upstreams {
            checkLoop(upstream.settings.proxy, upstream.path, upstream.position)
        }
        if let tracing = configuration.tracing, let listener = answering(url: tracing.endpoint) {
            diagnostics.error(
                section.position(of: "tracing"),
                "tracing: `otlp` leads back to this proxy, which listens on \(listener.text): write the address of the "
                    + "collector")
        }
        for client in configuration.clients {
            let position = clientPositions[client.name] ?? .whole
            checkLoop(client.proxy, "clients.\(client.name)", position)
            for (key, url) in [
                ("issuer", client.issuer), ("token_endpoint", client.tokenEndpoint),
                ("authorization_endpoint", client.authorizationEndpoint),
                ("device_authorization_endpoint", client.deviceAuthorizationEndpoint),
                ("revocation_endpoint", client.revocationEndpoint),
            ] {
                guard let url, let listener = answering(url: url) else { continue }
                diagnostics.error(
                    position,
                    "clients.\(client.name): `\(key)` leads back to this proxy, which listens on \(listener.text): "
                        + "write the address of the authorization server")
            }
        }
    }

    private func checkLoop(_ proxy: NextProxy, _ path: String, _ position: Position) {
        guard case .url(let url) = proxy, let listener = answering(url: url) else { return }
        diagnostics.error(
            position,
            "\(path): `proxy` is this proxy itself, which listens on \(listener.text): write the next one's address")
    }

    private func answering(url: String) -> Listener? {
        guard let parts = try? URLParts(url, example: "") else { return nil }
        return answering(host: parts.authority.host, port: parts.port)
    }

    private func answering(host: Authority.Host, port: UInt16) -> Listener? {
        let name = Grammar.bare(host)
        return listeners.first { $0.answers(host: name, port: port) }
    }
}
