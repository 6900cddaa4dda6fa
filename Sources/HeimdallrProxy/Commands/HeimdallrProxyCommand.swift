import ArgumentParser
import Configuration
import Playground
import WireText

struct HeimdallrProxyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "heimdallr-proxy",
        abstract: "Lets programs that know nothing of OAuth call APIs that want a token.",
        discussion: """
            A program sends plain HTTP to this proxy. For each host in the configuration, the proxy keeps an OAuth token \
            fresh, adds it to the request, and forwards the request to the API over TLS:

              heimdallr-proxy demo                   see it work; needs nothing
              heimdallr-proxy --config config.yaml   run the proxy
              export http_proxy=http://127.0.0.1:8080
                                                     tell programs to use it

            Programs say http:// to the proxy, even if the API is https://. A request through CONNECT is encrypted, so \
            it gets no token without `intercept: true`.

            A single API needs no file. Set HEIMDALLR_UPSTREAM, HEIMDALLR_TOKEN_ENDPOINT, \
            HEIMDALLR_CLIENT_ID and HEIMDALLR_CLIENT_SECRET, and start heimdallr-proxy.

            Exit codes: 0 success, 1 failure, 2 wrong usage, 3 a problem shown by status or why, 78 wrong configuration.
            """,
        version: "heimdallr-proxy \(Product.version)",
        subcommands: [
            ServeCommand.self, CheckCommand.self, DoctorCommand.self, StatusCommand.self, HealthCommand.self,
            ReloadCommand.self, LoginCommand.self, LogoutCommand.self, RefreshCommand.self, LogLevelCommand.self,
            TokenCommand.self, RequestsCommand.self, WhyCommand.self, ExecCommand.self, DemoCommand.self,
            KeygenCommand.self,
            StoreCommand.self, CACommand.self, ClientDocumentCommand.self, ConfigCommand.self,
        ],
        defaultSubcommand: ServeCommand.self)

    static let _errorLabel = "error"

    /// Refuses `help` with an unknown command. The parser itself would show the help of the whole program.
    static func checkHelp(_ words: [String]) throws(ValidationError) {
        guard words.first == "help" else { return }
        var commands = configuration.subcommands
        for word in words.dropFirst() where !word.hasPrefix("-") && word != "help" {
            guard let command = commands.first(where: { $0._commandName == word }) else {
                let meant = Suggestion.nearest(to: word, among: commands.map { $0._commandName })
                throw ValidationError("there is no command \"\(word)\"" + Suggestion.phrase(meant))
            }
            commands = command.configuration.subcommands
        }
    }

    /// Returns the error for an unknown command, which the parser would take for an argument of the default command.
    /// - Parameter next: the word behind the command, which may be the name of a subcommand.
    static func unknownVerb(_ word: String?, _ next: String? = nil) -> String? {
        if let group = configuration.subcommands.first(where: { $0._commandName == word }) {
            return unknownVerb(next, of: group._commandName, group.configuration.subcommands.map { $0._commandName })
        }
        let verbs = configuration.subcommands.map { $0._commandName } + ["help"]
        guard let word, !word.hasPrefix("-"), !verbs.contains(word) else { return nil }
        if word.hasSuffix(".yaml") || word.hasSuffix(".yml") || word.contains("/") {
            return "error: there is no command \"\(word)\"; did you mean \"serve --config \(word)\"?\n"
                + "See 'heimdallr-proxy --help' for the commands.\n"
        }
        let meant = Suggestion.phrase(nearest(to: word, among: verbs))
        return "error: there is no command \"\(word)\"\(meant)\nSee 'heimdallr-proxy --help' for the commands.\n"
    }
}

extension HeimdallrProxyCommand {
    private static func unknownVerb(_ word: String?, of group: String, _ verbs: [String]) -> String? {
        guard let word, !word.hasPrefix("-"), !verbs.isEmpty, !(verbs + ["help"]).contains(word) else { return nil }
        let meant = Suggestion.nearest(to: word, among: verbs)
        let advice = meant == nil ? ": write \(verbs.joined(separator: ", "))" : Suggestion.phrase(meant)
        return "error: there is no command \"\(group) \(word)\"\(advice)\n"
            + "See 'heimdallr-proxy \(group) --help' for the commands.\n"
    }

    /// Names of commands in other programs, each with our command for the same purpose.
    private static let otherNames = [
        "run": "serve", "start": "serve", "up": "serve", "daemon": "serve", "validate": "check", "verify": "check",
        "test": "check", "lint": "check", "conf": "check", "info": "status", "state": "status", "ps": "status",
        "healthcheck": "health", "probe": "health", "ready": "health", "ping": "health", "renew": "refresh",
        "reread": "reload", "hup": "reload",
        "signin": "login", "auth": "login", "authorize": "login", "signout": "logout", "revoke": "logout",
        "diagnose": "doctor", "diag": "doctor", "explain": "why", "route": "why", "env": "exec", "with": "exec",
        "genkey": "keygen", "key": "keygen", "loglevel": "log-level", "level": "log-level", "verbose": "log-level",
        "debug": "log-level", "schema": "config schema", "version": "--version", "try": "doctor",
    ]

    /// Finds a command by similar letters, by its beginning, or by its name in other programs.
    private static func nearest(to word: String, among verbs: [String]) -> String? {
        let plain = word.lowercased().filter { $0 != "-" && $0 != "_" }
        if let verb = verbs.first(where: { $0 == plain }) ?? otherNames[plain] { return verb }
        if let near = Suggestion.nearest(to: plain, among: verbs) { return near }
        let begun = verbs.filter { plain.count >= 2 && ($0.hasPrefix(plain) || plain.hasPrefix($0)) }
        return begun.count == 1 ? begun[0] : nil
    }
}

struct ConfigurationOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The configuration file.",
            discussion: "Default: config.yaml of the current folder; without one, the HEIMDALLR_… variables.",
            valueName: "path"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    /// Returns the source and this process's environment.
    /// - Throws: a usage error with advice, if there is no configuration.
    func choose() throws(ValidationError) -> (source: ConfigurationSource, environment: [String: String]) {
        let environment = ProcessEnvironment.all
        return (try ConfigurationSource.choose(named: config, environment: environment), environment)
    }

    /// Does the same as `choose`, and starts the playground if the configuration turns it on.
    func chooseWithPlayground() async throws -> (
        source: ConfigurationSource, environment: [String: String], playground: Playground?
    ) {
        var (source, environment) = try choose()
        let playground = source.wantsPlayground ? try await PlaygroundVariables.start(addingTo: &environment) : nil
        return (source, environment, playground)
    }

    /// Does the same as `choose`, with placeholders for the playground's variables, for commands that start nothing.
    func chooseWithoutPlayground() throws(ValidationError) -> (
        source: ConfigurationSource, environment: [String: String]
    ) {
        var (source, environment) = try choose()
        if source.wantsPlayground { PlaygroundVariables.addPlaceholders(to: &environment) }
        return (source, environment)
    }

    /// Loads the configuration for a command that starts nothing, and prints its problems.
    func load() throws -> (settings: Configuration, environment: [String: String]) {
        let (source, environment) = try chooseWithoutPlayground()
        return (try source.load(environment: environment), environment)
    }

    /// Loads the configuration for a program that uses the proxy, and prints its problems. Needs none of the secrets.
    func loadForPrograms() throws -> (settings: Configuration, environment: [String: String]) {
        let (source, environment) = try chooseWithoutPlayground()
        return (try source.loadForPrograms(environment), environment)
    }
}
