import Configuration

/// The environment of a child program: this process's environment without the variables of the configuration. A program
/// needs no secrets to use the proxy.
enum ChildEnvironment {
    /// Returns the variables to remove: secrets, all `HEIMDALLR_…`, and those of the configuration (`${NAME}`).
    static func withheld(from environment: some Sequence<String>, _ configuration: Configuration) -> Set<String> {
        var names = configuration.variables.filter { !isPublic($0) }
        for source in configuration.allSecrets { names.formUnion(source.variables) }
        // All `HEIMDALLR_…`, because a variable with a misspelled name may hold a secret.
        names.formUnion(environment.filter { $0.hasPrefix("HEIMDALLR_") })
        return names
    }

    static func of(_ environment: [String: String], _ configuration: Configuration) -> [String: String] {
        let names = withheld(from: environment.keys, configuration)
        return environment.filter { !names.contains($0.key) }
    }

    /// Whether most programs need the variable. `${HOME}` in the configuration does not remove HOME.
    private static func isPublic(_ name: String) -> Bool {
        publicNames.contains(name) || name.hasPrefix("LC_") || name.hasPrefix("XDG_")
    }

    private static let publicNames: Set<String> = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "LANG", "LANGUAGE", "TZ", "TERM", "HOSTNAME",
        "DISPLAY", "WAYLAND_DISPLAY", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
        "NO_PROXY", "ALL_PROXY",
    ]
}

extension Configuration {
    var allSecrets: [SecretSource] {
        clients.flatMap(\.allSecrets) + upstreams.flatMap(\.secrets) + commonSecrets.map(\.source)
    }

    /// Secrets that belong to no client and no upstream, with names to show.
    var commonSecrets: [(name: String, source: SecretSource)] {
        var all = proxy.users.sorted { $0.key < $1.key }.map { (name: "user \($0.key)", source: $0.value) }
        if let token = admin?.token { all.append(("admin.token", token)) }
        all += store.secrets.map { ("store", $0) }
        if let key = interception?.store?.key { all.append(("interception", key)) }
        return all + (tracing?.headers ?? []).map { ("tracing.headers", $0.value) }
    }
}

extension ClientSettings {
    var allSecrets: [SecretSource] { secrets + [clientKey, clientAssertion].compactMap(\.self) }
}

extension UpstreamSettings {
    var secrets: [SecretSource] {
        injections.flatMap(\.secrets) + issue.flatMap { $0.secrets.compactMap(\.source) }
            + (metadata?.authorization.map { [$0] } ?? [])
    }
}
