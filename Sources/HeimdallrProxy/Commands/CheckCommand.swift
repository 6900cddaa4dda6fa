import Administration
import ArgumentParser
import Configuration
import Proxy
import Reactor
import WireText

struct CheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check the configuration and show where requests would go.",
        discussion: """
            Starts nothing, changes nothing and asks no server (doctor does). Problems go to standard error, each with \
            file, line and column, and the exit code is 78. Problems that a start would have on this machine count. \
            Of a good configuration it prints the listeners, and one line for each rule, the most specific first.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Print JSON for programs, problems included, to standard output.")
    var json = false

    func run() async throws {
        var environment = ProcessEnvironment.all
        let source = try ConfigurationSource.choose(named: options.config, environment: environment)
        if source.wantsPlayground { PlaygroundVariables.addPlaceholders(to: &environment) }
        let passed = try ServiceManager.take().passed
        if json {
            let report = try await Self.report(source, environment, passed)
            OutputDescriptor.standardOutput.write(report.json.document)
            return
        }
        let settings = try source.load(environment: environment, passed: passed)
        try await source.checkStart(settings, passed: passed)
        let keys = KeyCheck(settings, environment: environment)
        OutputDescriptor.standardOutput.write(Self.report(settings, source: source, keys: keys.findings.map(\.message)))
    }

    /// - Throws: `ExitStatus.badConfiguration`, after every problem was printed as JSON.
    private static func report(
        _ source: ConfigurationSource, _ environment: [String: String], _ passed: [PassedSocket]
    ) async throws -> CheckReport {
        do throws(ConfigurationError) {
            let (settings, warnings) = try source.readAgain(environment: environment, passed: passed)
            let start = await source.startFaults(settings, passed: passed)
            guard start.problems.isEmpty else {
                throw ConfigurationError(problems: start.problems, warnings: warnings + start.warnings)
            }
            return CheckReport(
                settings: settings, source: source, keys: KeyCheck(settings, environment: environment),
                warnings: ConfigurationSource.variableWarnings + warnings + start.warnings)
        } catch {
            OutputDescriptor.standardOutput.write(CheckReport.json(of: error, in: source).document)
            throw ExitStatus.badConfiguration.error
        }
    }

    static func report(_ settings: Configuration, source: ConfigurationSource, keys: [String] = []) -> String {
        let name =
            switch source {
            case .file(let path): path
            case .environment: "The environment"
            }
        var text = "\(name) is good.\n\nListening on:\n"
        for address in settings.proxy.listen { text += "  \(address)\n" }
        for upstream in settings.upstreams {
            guard let address = upstream.listen else { continue }
            text += "  \(address)  (every request is for \(upstream.host))\n"
        }
        let users = settings.proxy.users.keys.sorted()
        if !users.isEmpty { text += "  for users only: \(users.joined(separator: ", "))\n" }
        if let admin = settings.admin { text += "  \(admin.listen)  (administration)\n" }
        let listing = RouteListing(settings)
        text += "\nRoutes, the most specific first:\n"
        for line in ResolvedRoute.table(listing.routes) { text += "  \(line)\n" }
        text += "  every other host: \(listing.forwardsOthers ? "forwarded unsigned" : "rejected")\n"
        if settings.proxy.connect == .tunnel {
            let destinations = listing.tunnels.map { $0 == .any ? "any public address" : $0.description }
            text += "  CONNECT: unsigned tunnels to \(destinations.joined(separator: ", "))\n"
        }
        if !keys.isEmpty { text += "\nKeys and certificates:\n" + keys.map { "  \($0)\n" }.joined() }
        text += redirectURIs(settings)
        if settings.playground { text += "\nThe playground gets its real ports when the proxy starts.\n" }
        return text
    }

    /// The redirect URIs to register at the authorization servers before the first sign-in.
    private static func redirectURIs(_ settings: Configuration) -> String {
        let lines = settings.redirectURIs.map { "  \($0.client): \($0.uri)\n" }
        guard !lines.isEmpty else { return "" }
        return "\nRedirect URIs to register at the authorization servers:\n" + lines.joined()
            + (settings.redirectURIs.contains { $0.uri.contains(":PORT/") }
                ? "  (PORT is another one at each start: write a port into admin.listen)\n" : "")
    }
}
