import Configuration

/// The environment of a program that we start: ours, without the variables of the configuration. A program that uses a token
/// does not need the means to get one.
enum ChildEnvironment {
    /// The variables to remove: those of secrets, those that the configuration names as `${NAME}`, and all of ours.
    static func withheld(from environment: some Sequence<String>, _ configuration: Configuration) -> Set<String> {
        var names = configuration.variables.filter { !isPublic($0) }
        names.formUnion(secretVariables(configuration))
        // A misspelled variable may hold a secret.
        names.formUnion(environment.filter { $0.hasPrefix("HEIMDALLR_") })
        return names
    }

    static func of(_ environment: [String: String], _ configuration: Configuration) -> [String: String] {
        let names = withheld(from: environment.keys, configuration)
        return environment.filter { !names.contains($0.key) }
    }

    /// Variables that programs need to find files and users. `${HOME}` in a path keeps HOME.
    private static func isPublic(_ name: String) -> Bool {
        publicNames.contains(name) || name.hasPrefix("LC_") || name.hasPrefix("XDG_")
    }

    private static let publicNames: Set<String> = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "LANG", "LANGUAGE", "TZ", "TERM", "HOSTNAME",
        "DISPLAY", "WAYLAND_DISPLAY", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
        "NO_PROXY", "ALL_PROXY",
    ]

    /// The variables of `{env: NAME}`, under any name.
    private static func secretVariables(_ settings: Configuration) -> Set<String> {
        var sources = [settings.admin?.token]
        for client in settings.clients { sources += client.secrets }
        for secret in settings.proxy.users.values { sources.append(secret) }
        sources += settings.store.secrets
        return Set(
            sources.compactMap { source in
                if case .environment(let name) = source { name } else { nil }
            })
    }
}
