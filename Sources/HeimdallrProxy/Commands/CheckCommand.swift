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
            Starts nothing, changes nothing and contacts no server (doctor does). Prints problems to standard error, \
            with file, line and column; the exit code is then 78. Problems include faults that a start would have. \
            For a valid configuration it prints the listeners, and one line for each rule, the most specific first.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Print JSON for programs, problems included, to standard output.")
    var json = false

    func run() async throws {
        let (source, environment) = try options.chooseWithoutPlayground()
        let passed = try ServiceManager.take().passed
        if json {
            let report = try await Self.report(source, environment, passed)
            CommandOutput.write(report.json.document)
            return
        }
        let settings = try source.load(environment: environment, passed: passed)
        let (problems, warnings) = await source.startFaults(settings, passed: passed)
        for warning in warnings { ConfigurationReport.plain.warn(warning) }
        guard problems.isEmpty else {
            ConfigurationReport.plain.fail(problems, starting: false)
            throw ExitStatus.badConfiguration.error
        }
        let keys = KeyCheck(settings.keyUses, environment: environment)
        CommandOutput.write(Self.report(settings, source: source, keys: keys.findings.map(\.message)))
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
                settings: settings, source: source, keys: KeyCheck(settings.keyUses, environment: environment),
                warnings: ConfigurationSource.variableWarnings + warnings + start.warnings)
        } catch {
            CommandOutput.write(CheckReport.json(of: error, in: source).document)
            throw ExitStatus.badConfiguration.error
        }
    }

    static func report(_ settings: Configuration, source: ConfigurationSource, keys: [String] = []) -> String {
        let name = source == .environment ? "The environment" : source.name
        var text = "\(name) is good.\n\nListening on:\n"
        for (address, index) in settings.listeners {
            let shown = settings.tls(of: address, upstream: index) == nil ? "\(address)" : "https://\(address)"
            let rule = index.map { "  (every request is for \(settings.upstreams[$0].host))" } ?? ""
            text += "  \(shown)\(rule)\n"
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
        let files = settings.clients.compactMap { client in client.file.map { "  \(client.name): \($0.inWords)\n" } }
        if !files.isEmpty { text += "\nToken files:\n" + files.joined() }
        if !keys.isEmpty { text += "\nKeys and certificates:\n" + keys.map { "  \($0)\n" }.joined() }
        text += redirectURIs(settings)
        if settings.playground { text += "\nThe playground gets its real ports when the proxy starts.\n" }
        return text
    }

    /// The redirect URIs to register at the authorization servers before the first sign-in.
    private static func redirectURIs(_ settings: Configuration) -> String {
        let lines = settings.redirectURIs.map { "  \($0.client): \($0.uri)\n" }.joined()
        guard !lines.isEmpty else { return "" }
        return "\nRedirect URIs to register at the authorization servers:\n" + lines
            + (lines.contains(":PORT/")
                ? "  (PORT changes at each start: write a fixed port into admin.listen)\n" : "")
    }
}

/// The JSON report of `check` about a valid configuration.
struct CheckReport {
    let settings: Configuration
    let source: ConfigurationSource
    let keys: KeyCheck
    var warnings: [ConfigurationError.Problem] = []

    var json: JSON {
        let listing = RouteListing(settings)
        return [
            "good": true, "configuration": .string(source.name), "problems": [],
            "warnings": .array(warnings.map(Self.json)), "listeners": .array(listeners),
            "users": JSON(settings.proxy.users.keys.sorted()),
            "administration": JSON(settings.admin.map { "\($0.listen)" }),
            "routes": .array(listing.routes.map(Self.json)),
            "other_hosts": .string(listing.forwardsOthers ? "forwarded unsigned" : "rejected"),
            "tunnels": JSON(settings.proxy.connect == .tunnel ? listing.tunnels.map(\.description) : []),
            "keys": .array(keys.findings.map(Self.json)),
            "token_files": .object(
                settings.clients.compactMap { client in client.file.map { .init(client.name, .string($0.path)) } }),
            "redirect_uris": .object(settings.redirectURIs.map { .init($0.client, .string($0.uri)) }),
        ]
    }

    /// Returns the JSON report about an invalid configuration.
    static func json(of error: ConfigurationError, in source: ConfigurationSource) -> JSON {
        [
            "good": false, "configuration": .string(source.name), "problems": .array(error.problems.map(json)),
            "warnings": .array(error.warnings.map(json)),
        ]
    }

    private var listeners: [JSON] {
        settings.listeners.map { address, index in
            [
                "address": .string("\(address)"),
                "upstream": JSON(index.map { settings.upstreams[$0].host.description }),
                "tls": .bool(settings.tls(of: address, upstream: index) != nil),
            ]
        }
    }

    private static func json(_ route: ResolvedRoute) -> JSON {
        [
            "host": .string(route.host), "path": .string(route.path), "methods": .string(route.methods),
            "fields": .string(route.fields), "callers": .string(route.callers),
            "destination": .string(route.destination), "client": .string(route.client),
            "put_on_as": .string(route.injection), "https": route.https.isEmpty ? .null : .string(route.https),
        ]
    }

    private static func json(_ problem: ConfigurationError.Problem) -> JSON {
        [
            "file": .string(problem.file), "line": problem.line.map { .number($0) } ?? .null,
            "column": problem.column.map { .number($0) } ?? .null, "message": .string(problem.message),
        ]
    }
}

extension TokenFileSettings {
    /// `/run/x.token (plain, mode 640, group prometheus)`
    fileprivate var inWords: String {
        "\(path) (\(format), mode \(String(mode, radix: 8))\(group.map { ", group \($0)" } ?? ""))"
    }
}

extension Configuration {
    /// Listeners for programs: those of `proxy.listen`, then those of upstreams, with the upstream's index.
    var listeners: [(address: ListenAddress, upstream: Int?)] {
        proxy.listen.map { ($0, nil) }
            + upstreams.enumerated().compactMap { index, upstream in upstream.listen.map { ($0, index) } }
    }

    /// Redirect URIs to register at the authorization servers, by client.
    var redirectURIs: [(client: String, uri: String)] {
        guard case .tcp = admin?.listen else { return [] }
        return clients.compactMap { client in
            guard client.grantType == .authorizationCode || client.grantType == .implicit,
                client.auto == nil || !client.clientID.isEmpty
            else { return nil }
            return (client.name, redirectURI(of: client))
        }
    }
}
