import Configuration

/// What a program that we start may know of our environment: all but what the configuration took from it. What can use a
/// token need not have the means to get one.
enum ChildEnvironment {
    /// Which of the variables are taken away: those that secrets come from, those that the configuration names as
    /// `${NAME}` anywhere, and all of ours.
    static func withheld(from environment: some Sequence<String>, _ configuration: Configuration) -> Set<String> {
        var names = configuration.variables.filter { !isPublic($0) }
        names.formUnion(secretVariables(configuration))
        // One that is misspelled holds its secret none the less.
        names.formUnion(environment.filter { $0.hasPrefix("HEIMDALLR_") })
        return names
    }

    static func of(_ environment: [String: String], _ configuration: Configuration) -> [String: String] {
        let names = withheld(from: environment.keys, configuration)
        return environment.filter { !names.contains($0.key) }
    }

    /// Names that say where things are and who runs them, which programs can't do without. `${HOME}` in a path takes
    /// nothing from anybody.
    private static func isPublic(_ name: String) -> Bool {
        publicNames.contains(name) || name.hasPrefix("LC_") || name.hasPrefix("XDG_")
    }

    private static let publicNames: Set<String> = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "LANG", "LANGUAGE", "TZ", "TERM", "HOSTNAME",
        "DISPLAY", "WAYLAND_DISPLAY", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
        "NO_PROXY", "ALL_PROXY",
    ]

    /// Whatever they are called.
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
