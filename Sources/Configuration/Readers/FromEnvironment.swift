import HTTPMessage

extension Configuration {
    /// Makes a configuration with one upstream, without a file, from `HEIMDALLR_UPSTREAM`, `HEIMDALLR_TOKEN_ENDPOINT`,
    /// `HEIMDALLR_CLIENT_ID`, `HEIMDALLR_CLIENT_SECRET` and similar variables (see `docs/configuration.md`).
    ///
    /// - Returns: `nil` if `HEIMDALLR_UPSTREAM` is not set.
    /// - Throws: all problems. Each names its variable.
    public static func fromEnvironment(
        _ environment: [String: String], isForPrograms: Bool = false
    ) throws(ConfigurationError) -> (configuration: Configuration, warnings: [ConfigurationError.Problem])? {
        // An empty variable counts as unset: compose files and unit files write absent variables in this way.
        let environment = environment.filter { !$0.key.hasPrefix("HEIMDALLR_") || !$0.value.isEmpty }
        guard let upstream = environment["HEIMDALLR_UPSTREAM"] else { return nil }
        var names: [String: String] = [:]
        for (variable, path) in EnvironmentForm.variables where names[path] == nil { names[path] = variable }
        for section in ["clients.default", "upstreams[0]"] {
            names[section + ".allow_plaintext"] = EnvironmentForm.plaintext
        }
        let diagnostics = Diagnostics(
            file: "environment", environment: environment, variables: names, isForPrograms: isForPrograms)
        let form = EnvironmentForm(environment)
        form.warnAboutUnknownVariables(diagnostics)
        return try Loader.load(form.tree(upstream: upstream, diagnostics), diagnostics)
    }
}

/// Converts environment variables to the tree of a file with a client and an upstream.
private struct EnvironmentForm {
    static let variables: [(variable: String, path: String)] = [
        ("HEIMDALLR_UPSTREAM", "upstreams[0].url"),
        ("HEIMDALLR_UPSTREAM_LISTEN", "upstreams[0].listen"),
        ("HEIMDALLR_UPSTREAM_CA_FILE", "upstreams[0].tls.ca_file"),
        ("HEIMDALLR_ISSUER", "clients.default.issuer"),
        ("HEIMDALLR_TOKEN_ENDPOINT", "clients.default.token_endpoint"),
        ("HEIMDALLR_CLIENT_ID", "clients.default.client_id"),
        ("HEIMDALLR_CLIENT_SECRET", "clients.default.client_secret"),
        ("HEIMDALLR_CLIENT_SECRET_FILE", "clients.default.client_secret"),
        ("HEIMDALLR_TOKEN_ENDPOINT_AUTH_METHOD", "clients.default.token_endpoint_auth_method"),
        ("HEIMDALLR_SCOPE", "clients.default.scope"),
        ("HEIMDALLR_AUDIENCE", "clients.default.audience"),
        ("HEIMDALLR_RESOURCE", "clients.default.resource"),
        ("HEIMDALLR_LISTEN", "proxy.listen"),
        ("HEIMDALLR_OPEN", "proxy.open"),
        ("HEIMDALLR_CA_FILE", "tls.ca_file"),
        ("HEIMDALLR_ADMIN_LISTEN", "admin.listen"),
        ("HEIMDALLR_ADMIN_SOCKET", "admin.socket"),
        ("HEIMDALLR_ADMIN_QUITQUITQUIT", "admin.quitquitquit"),
        ("HEIMDALLR_LOG_LEVEL", "log.level"),
        ("HEIMDALLR_LOG_FORMAT", "log.format"),
    ]
    static let plaintext = "HEIMDALLR_ALLOW_PLAINTEXT"

    private let environment: [String: String]

    init(_ environment: [String: String]) { self.environment = environment }

    func warnAboutUnknownVariables(_ diagnostics: Diagnostics) {
        let prefix = "HEIMDALLR_"
        let known = (Self.variables.map(\.variable) + [Self.plaintext]).map { String($0.dropFirst(prefix.count)) }
        for name in environment.keys.sorted() where name.hasPrefix(prefix) {
            let rest = String(name.dropFirst(prefix.count))
            guard !known.contains(rest), let near = Suggestion.nearest(to: rest, among: known) else { continue }
            diagnostics.warn(.variable(name), "unknown variable; did you mean \(prefix)\(near)?")
        }
    }

    func tree(upstream: String, _ diagnostics: Diagnostics) -> Node {
        let client =
            entries("clients.default").filter { $0.key != "client_secret" } + secret(diagnostics)
            + entry("allow_plaintext", Self.plaintext)
        var authority = (try? WebURL(upstream, allowing: [.userInfo, .fragment]))?.authority
        // A `host` without a port matches 80 and 443, as in a file.
        if authority?.port == 443 || authority?.port == 80 { authority?.port = nil }
        // The reader of `url` reports an invalid URL. The host `invalid` prevents a report of a missing host.
        let host = authority.map { leaf("host", $0.description, .variable("HEIMDALLR_UPSTREAM")) }
        let target =
            entries("upstreams[0]") + entry("allow_plaintext", Self.plaintext)
            + [leaf("client", "default", .whole), host ?? leaf("host", "invalid", .whole)]
            + nested("tls", "upstreams[0].tls")
        let upstreams = Node.Content.sequence([.init(position: .whole, content: .mapping(target))])
        let root =
            ["proxy", "admin", "log", "tls"].flatMap { nested($0, $0) } + [
                mapping("clients", [mapping("default", client)]),
                .init(key: "upstreams", keyPosition: .whole, value: .init(position: .whole, content: upstreams)),
            ]
        return .init(position: .whole, content: .mapping(root))
    }

    private func secret(_ diagnostics: Diagnostics) -> [Node.Entry] {
        let (name, fileName) = ("HEIMDALLR_CLIENT_SECRET", "HEIMDALLR_CLIENT_SECRET_FILE")
        if environment[name] != nil, environment[fileName] != nil {
            diagnostics.error(.variable(fileName), "set either this or \(name), not both")
        }
        if let path = environment[fileName] {
            return [mapping("client_secret", [leaf("file", path, .variable(fileName))], at: .variable(fileName))]
        }
        guard environment[name] != nil else { return [] }
        return [mapping("client_secret", [leaf("env", name, .variable(name))], at: .variable(name))]
    }

    /// Returns the keys directly under a path.
    private func entries(_ path: String) -> [Node.Entry] {
        Self.variables.flatMap { variable, full -> [Node.Entry] in
            let key = String(full.split(separator: ".").last ?? "")
            return full == "\(path).\(key)" ? entry(key, variable) : []
        }
    }

    private func nested(_ key: String, _ path: String) -> [Node.Entry] {
        let inner = entries(path)
        return inner.isEmpty ? [] : [mapping(key, inner)]
    }

    private func entry(_ key: String, _ variable: String) -> [Node.Entry] {
        environment[variable].map { [leaf(key, $0, .variable(variable))] } ?? []
    }

    private func leaf(_ key: String, _ text: String, _ position: Position) -> Node.Entry {
        let scalar = Node.Scalar(text: text, plain: false, verbatim: true)
        return .init(key: key, keyPosition: position, value: .init(position: position, content: .scalar(scalar)))
    }

    private func mapping(_ key: String, _ entries: [Node.Entry], at position: Position = .whole) -> Node.Entry {
        .init(key: key, keyPosition: position, value: .init(position: position, content: .mapping(entries)))
    }
}
