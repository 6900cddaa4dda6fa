import ArgumentParser
import Configuration
import FoundationEssentials

/// Says whether a configuration is good, and what it means.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check the configuration and show where requests would go.",
        discussion: """
            Starts nothing. Problems go to standard error, each with file, line and column, and the exit code is 78. \
            A good configuration is shown as the proxy understands it: its listeners, and one line for each rule, the \
            most specific first.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        var environment = ProcessInfo.processInfo.environment
        let source = try ConfigurationSource.choose(named: options.config, environment: environment)
        if source.wantsPlayground { PlaygroundVariables.addPlaceholders(to: &environment) }
        let settings = try source.load(environment: environment)
        OutputDescriptor.standardOutput.write(Self.report(settings, source: source))
    }

    static func report(_ settings: Configuration, source: ConfigurationSource) -> String {
        let name =
            switch source {
            case .file(let path): path
            case .environment: "The environment"
            }
        var text = "\(name) is good.\n\nListening on:\n"
        for address in settings.proxy.listen { text += "  \(address.shown)\n" }
        for upstream in settings.upstreams {
            guard let address = upstream.listen else { continue }
            text += "  \(address.shown)  (every request is for \(upstream.host))\n"
        }
        let users = settings.proxy.users.keys.sorted()
        if !users.isEmpty { text += "  for users only: \(users.joined(separator: ", "))\n" }
        text += "\nRoutes, the most specific first:\n"
        for line in settings.routeTable { text += "  \(line)\n" }
        switch settings.proxy.unmatched {
        case .reject: text += "  every other host: rejected\n"
        case .forward: text += "  every other host: forwarded unsigned\n"
        }
        if settings.proxy.connect == .tunnel {
            let places = settings.proxy.tunnels.map { $0 == "*" ? "any public address" : $0 }
            text += "  CONNECT: unsigned tunnels to \(places.joined(separator: ", "))\n"
        }
        if settings.playground { text += "\nThe playground gets its real ports when the proxy starts.\n" }
        return text
    }
}

extension ListenAddress {
    /// As the configuration would write it.
    var shown: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, _): "unix:\(path)"
        }
    }
}
