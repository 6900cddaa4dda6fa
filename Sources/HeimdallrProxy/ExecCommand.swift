import ArgumentParser
import Configuration
import FoundationEssentials

/// Runs a program that is to use the proxy.
struct ExecCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exec",
        abstract: "Run a program with the proxy's variables set and our secrets' removed.",
        discussion: """
            Sets http_proxy for the program, and removes the environment variables that the configuration takes secrets \
            from: what can use a token need not have the means to get one. The program takes this process's place. \
            Example:

              heimdallr-proxy exec -- curl http://api.example.com/
            """)

    @OptionGroup var options: ConfigurationOptions

    @Argument(parsing: .captureForPassthrough, help: "The program and its arguments, after --.")
    var command: [String] = []

    func validate() throws {
        if program.isEmpty { throw ValidationError("Name a program: heimdallr-proxy exec -- COMMAND…") }
    }

    private var program: [String] { command.first == "--" ? Array(command.dropFirst()) : command }

    func run() throws {
        var environment = ProcessInfo.processInfo.environment
        let source = try ConfigurationSource.choose(named: options.config, environment: environment)
        if source.wantsPlayground { PlaygroundVariables.addPlaceholders(to: &environment) }
        let settings = try source.load(environment: environment)
        guard let proxy = Self.proxyURL(settings) else {
            OutputDescriptor.standardError.write(
                "error: proxy.listen has no port that is known before the proxy runs; give it one\n")
            throw ExitStatus.failure.error
        }
        // curl reads http_proxy in lower case only (httpoxy); others read the capitals. https goes as it went, for no
        // token can be put on it.
        let failure = ProgramExecution.replaceProcess(
            program, setting: ["http_proxy": proxy, "HTTP_PROXY": proxy], removing: Self.secretVariables(settings))
        OutputDescriptor.standardError.write("error: can't run \(program[0]): \(failure.sentence)\n")
        throw ExitStatus.failure.error
    }

    /// `http://127.0.0.1:8080`; `nil` for a port that the kernel chooses.
    static func proxyURL(_ settings: Configuration) -> String? {
        for case .tcp(let host, let port) in settings.proxy.listen where port != 0 {
            // To connect to every address is to connect to none.
            let reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
            return reachable.contains(":") ? "http://[\(reachable)]:\(port)" : "http://\(reachable):\(port)"
        }
        return nil
    }

    /// The variables that secrets of this configuration come from.
    static func secretVariables(_ settings: Configuration) -> Set<String> {
        var sources = [settings.admin?.token]
        for client in settings.clients { sources += [client.clientSecret, client.password, client.refreshToken] }
        if case .file(_, let key) = settings.store { sources.append(key) }
        let names = sources.compactMap { source in
            if case .environment(let name) = source { name } else { nil }
        }
        return Set(names).union(["HEIMDALLR_CLIENT_SECRET"])
    }
}
