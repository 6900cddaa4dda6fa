import Administration
import ArgumentParser
import Configuration
import Logging
import Playground
import Proxy
import Reactor
import Reports
import WireText

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the proxy (this is the default).",
        discussion: """
            Runs in the foreground and logs to standard error. On SIGTERM or SIGINT it stops accepting, finishes the \
            requests in flight and exits with 0, or with 1 if a refresh token could not be saved. On SIGHUP it reads its configuration again, as reload does. Other \
            signals, such as SIGUSR1, only write a log line.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() async throws { try await Self.serve(options) }

    /// Reads the simplest command lines without the parser, which would take a quarter of the time to the first answer.
    /// Returns `nil` for all other command lines.
    static func plain(_ words: [String]) -> ConfigurationOptions? {
        let words = words.first == "serve" ? words.dropFirst() : words[...]
        var options = ConfigurationOptions()
        options.config = words.last
        guard !words.isEmpty else { return options }
        return words.count == 2 && words.first == "--config" && !(words.last ?? "-").hasPrefix("-") ? options : nil
    }

    static func serve(_ options: ConfigurationOptions) async throws {
        do throws(DescriptorShortage) { try DescriptorShortage.checkStart() } catch {
            throw ExitStatus.failure.error("\(error)")
        }
        // This comes first, because a file opened earlier could get the descriptor number of a passed socket.
        let manager = try ServiceManager.take()
        Signals.catchUnusedSignals()
        let (source, environment, playground) = try await options.chooseWithPlayground()
        let freshness = ConfigurationFreshness(source)
        freshness.note()
        let settings = try source.load(environment: environment, passed: manager.passed, logs: true)
        let log = LogSetUp.bootstrap(settings.log)
        defer { log.writer.flush() }
        let signals = Signals(logger: log.logger)
        defer { signals.end() }

        let hasSavedAll: Bool
        do {
            let app = App(
                configuration: settings, log: log,
                read: { [environment] () throws(ConfigurationError) in
                    freshness.note()
                    return try source.readAgain(environment: environment, passed: manager.passed)
                }, quit: signals.stop, manager: manager, freshness: freshness)
            hasSavedAll = try await app.run(until: signals.stops, reloading: signals.reloads) { running in
                guard let playground, let address = running.addresses.first(where: { !$0.hasPrefix("unix:") }),
                    PlaygroundHint.leadsThere(settings, api: playground.apiAuthority)
                else { return }
                let hint = PlaygroundHint.text(proxy: address, page: running.page, settings)
                guard settings.log.format == .text, OutputDescriptor.standardOutput.write(hint) else {
                    return log.logger.info(
                        "the playground is on", metadata: PlaygroundHint.fields(address, running.page, settings))
                }
            }
        } catch {
            var fields: Logger.Metadata = ["reason": "\(error)"]
            if let shortage = (error as? SystemError).flatMap({ MachineShortage(errno: $0.code) }) {
                fields["what_to_do"] = "\(shortage.remedy)"
            }
            log.logger.error("the proxy stopped", metadata: fields)
            await playground?.stop()
            throw await ExitStatus(ofStart: error, settings, from: source, passed: manager.passed).error
        }
        await playground?.stop()
        if !hasSavedAll { throw ExitStatus.failure.error }
    }
}

extension ExitStatus {
    /// The exit code of a proxy that could not start: `badConfiguration` only if the next start would fail, too.
    init(
        ofStart error: any Error, _ settings: Configuration, from source: ConfigurationSource,
        passed: [PassedSocket] = []
    ) async {
        // These errors may not occur at the next start: an address, a socket's folder, a descriptor may be available then.
        let mayPass =
            error is ProxyServer.ListenError || error is AdministrationError || error is DescriptorShortage
            || error is SystemError
        let faults = await source.startFaults(settings, passed: passed).problems
        self = mayPass || faults.allSatisfy(\.mayPass) ? .failure : .badConfiguration
    }
}

/// Suggests the first request to try with the playground.
enum PlaygroundHint {
    static let host = "api.playground.test"
    static let url = "http://\(host)/hello"

    /// Whether an upstream of the configuration leads to the playground's API.
    static func leadsThere(_ settings: Configuration, api: String) -> Bool {
        guard case .upstream(let route) = RouteExplanation(settings, method: "GET", url: url) else { return false }
        return route.destination.hasSuffix("//\(api)")
    }

    static func command(proxy: String, users: some Collection<String> = []) -> String {
        let user = users.min().map { "--proxy-user \($0):PASSWORD " } ?? ""
        return "curl -x http://\(proxy) \(user)\(url)"
    }

    static func fields(_ proxy: String, _ page: String?, _ settings: Configuration) -> Logger.Metadata {
        var fields: Logger.Metadata = ["try": "\(command(proxy: proxy, users: settings.proxy.users.keys))"]
        if let page { fields["page"] = "http://\(page)/" }
        return fields
    }

    static func text(proxy: String, page: String?, _ settings: Configuration) -> String {
        let more = page.map { "The page, with sign-ins to try: http://\($0)/\n\n" } ?? ""
        return """
            The playground is on. This program sends no token, and the API requires one:

                \(command(proxy: proxy, users: settings.proxy.users.keys))

            \(more)

            """
    }
}
