import Administration
import ArgumentParser
import Configuration
import Playground
import Proxy
import Reactor
import WireText

/// Says whether a configuration is good, and what it means.
struct CheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check the configuration and show where requests would go.",
        discussion: """
            Starts nothing and changes nothing. Problems, also those that a start would meet on this machine, go to standard error, each with file, line and column, and the exit code is 78. \
            A good configuration is shown as the proxy understands it: its listeners, and one line for each rule, the \
            most specific first.

            With --try every client's server is looked up, and each client that needs nobody to sign in gets one token, \
            which is thrown away. The exit code is 1 when one of them can't. A refresh token of the configuration is not \
            tried: it may be good only once.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(name: .customLong("try"), help: "Ask the authorization servers, too, and fetch one token for each client.")
    var tries = false

    @Flag(help: "As JSON, for programs: problems, too, on standard output.")
    var json = false

    func run() async throws {
        var environment = ProcessEnvironment.all
        let source = try ConfigurationSource.choose(named: options.config, environment: environment)
        let playground: Playground? =
            source.wantsPlayground && tries ? try await PlaygroundVariables.start(addingTo: &environment) : nil
        if source.wantsPlayground, !tries { PlaygroundVariables.addPlaceholders(to: &environment) }
        let passed = try ServiceManager.take().passed
        var report: CheckReport?
        let settings: Configuration
        if json {
            let made = try await Self.report(source, environment, passed)
            settings = made.settings
            report = made
        } else {
            settings = try source.load(environment: environment, passed: passed)
            try await source.checkStart(settings, passed: passed)
            let keys = KeyCheck(settings, environment: environment)
            OutputDescriptor.standardOutput.write(Self.report(settings, source: source, keys: keys.lines))
        }
        guard tries else {
            if let report { OutputDescriptor.standardOutput.write(report.json.document) }
            return
        }
        if report == nil { OutputDescriptor.standardOutput.write("\nTrying the clients:\n") }
        let results: [Trial.Result]
        do {
            results = try await Trial(configuration: settings).results()
        } catch {
            Complaint.error(
                "the clients can't be tried: \(error)")
            throw ExitStatus.failure.error
        }
        await playground?.stop()
        if report != nil {
            report?.trials = results
            if let report { OutputDescriptor.standardOutput.write(report.json.document) }
        } else {
            for result in results { OutputDescriptor.standardOutput.write(result.text) }
            if results.isEmpty { OutputDescriptor.standardOutput.write("  there are none\n") }
        }
        if results.contains(where: { !$0.isGood }) { throw ExitStatus.failure.error }
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
            OutputDescriptor.standardOutput.write(CheckReport.json(of: error).document)
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
            let places = listing.tunnels.map { $0 == .any ? "any public address" : $0.description }
            text += "  CONNECT: unsigned tunnels to \(places.joined(separator: ", "))\n"
        }
        if !keys.isEmpty { text += "\nKeys and certificates:\n" + keys.map { "  \($0)\n" }.joined() }
        text += redirectURIs(settings)
        if settings.playground { text += "\nThe playground gets its real ports when the proxy starts.\n" }
        return text
    }

    /// What has to be registered at the authorization servers before anybody can sign in.
    private static func redirectURIs(_ settings: Configuration) -> String {
        let lines = settings.redirectURIs.map { "  \($0.client): \($0.uri)\n" }
        guard !lines.isEmpty else { return "" }
        return "\nRedirect URIs to register at the authorization servers:\n" + lines.joined()
            + (settings.redirectURIs.contains { $0.uri.contains(":PORT/") }
                ? "  (PORT is another one at each start: write a port into admin.listen)\n" : "")
    }
}
