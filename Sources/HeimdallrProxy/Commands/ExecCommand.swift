import ArgumentParser
import Configuration
import Cryptography
import HTTPMessage
import Heimdallr
import Proxy
import WireText

struct ExecCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exec",
        abstract: "Run a program that uses the proxy, without the variables of the proxy's secrets.",
        usage: """
            heimdallr-proxy exec [--config <path>] [--serve [--log-level <level>] [--log-file <path>]] [--enclose [--allow \
            <host:port>]...] [--user <name>] -- <command> [<argument> ...]
            """,
        discussion: """
            Sets http_proxy for the program. Adds this machine and the proxy's listeners to no_proxy. Sets \
            NODE_USE_ENV_PROXY=1, so that Node reads http_proxy and no_proxy, and Java's properties for both in \
            JAVA_TOOL_OPTIONS. Removes the environment variables of the \
            configuration's secrets, and all that begin with HEIMDALLR_. The program replaces this process. \
            If the configuration has proxy.users, --user names the program's user. The variables then contain the \
            user's name and password. Example:

              heimdallr-proxy exec -- curl http://api.example.com/

            With --serve no proxy needs to run: exec starts one for this program, on a free port of 127.0.0.1 instead \
            of proxy.listen. Other listeners stay as configured. The program starts once the proxy listens. Signals go \
            to the program. When it ends, the proxy finishes the requests in flight, says in one line on standard error \
            what it refused, if it refused anything, and ends. For jobs, CI, containers:

              heimdallr-proxy exec --serve --config config.yaml -- ./job

            The exit code is that of the program; as in shells, 127 if there is no such program, and 126 if it can't \
            be run. With --serve it is 128 plus the signal's number if a signal ended the program. If the proxy can't \
            start, the program does not start, and the exit code is that of serve.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Option(help: ArgumentHelp("The program's user, from proxy.users.", valueName: "name"))
    var user: String?

    @Flag(help: "Start a proxy for this program alone.")
    var serve = false

    @Flag(help: "Run the program in namespaces of its own, in which nothing but the proxy answers.")
    var enclose = false

    @Option(
        help: ArgumentHelp(
            "With --enclose: an address that the program reaches directly, without a token. May be repeated.",
            valueName: "host:port"))
    var allow: [String] = []

    @Option(
        help: ArgumentHelp(
            "With --serve: the level of the proxy's log.",
            discussion:
                "Default: warning, without a line for each request. With info, log.access decides about these lines.",
            valueName: "level"),
        completion: .list(LogSettings.Level.allCases.map(\.rawValue)))
    var logLevel: String?

    @Option(
        help: ArgumentHelp(
            "With --serve: the file that the proxy's log is appended to.",
            discussion: "Default: standard error, which the program shares.", valueName: "path"), completion: .file())
    var logFile: String?

    @Argument(parsing: .captureForPassthrough, help: "The program and its arguments, after --.")
    var command: [String] = []

    func validate() throws {
        // Unknown options before the program end up in `command`.
        if let first = command.first, first == "--help" || first == "-h" || first == "-help" {
            throw CleanExit.helpRequest(self)
        }
        if let first = command.first, first.hasPrefix("-"), first != "--" {
            throw ValidationError("Unknown option '\(first)'. Write -- in front of the program: exec -- COMMAND…")
        }
        if let logLevel {
            guard serve else { throw ValidationError("--log-level needs --serve") }
            do throws(LogLevel.Fault) { _ = try LogLevel.read(logLevel, for: nil) } catch {
                throw ValidationError(error.sentence)
            }
        }
        if logFile != nil, !serve { throw ValidationError("--log-file needs --serve") }
        if !allow.isEmpty, !enclose { throw ValidationError("--allow needs --enclose") }
        for address in allow where AllowedAddress(address) == nil {
            throw ValidationError(
                "--allow takes HOST:PORT of one server, such as db.example.com:5432, and not '\(address)'")
        }
        if program.isEmpty { throw ValidationError("Name a program: heimdallr-proxy exec -- COMMAND…") }
    }

    var allowed: [AllowedAddress] { allow.compactMap { AllowedAddress($0) } }

    var program: [String] { command.first == "--" ? Array(command.dropFirst()) : command }

    func run() throws {
        if enclose {
            // Hides the secrets' files, so it has to know them.
            let (settings, environment) = try options.load()
            throw try runEnclosed(settings, environment)
        }
        let (settings, environment) = try options.loadForPrograms()
        guard let authority = Self.authority(settings) else { throw Self.lackOfAuthority(settings) }
        let failure = ProgramExecution.replaceProcess(
            program,
            setting: try Self.variables(
                proxy: try credentials(settings, environment) + authority, settings, environment),
            removing: ChildEnvironment.withheld(from: environment.keys, settings))
        throw exitCode(of: failure)
    }

    /// - Parameters:
    ///   - trust: the running proxy's trust files; `nil` reads the files at the usual path.
    ///   - isEnclosed: whether all addresses lead the program to the proxy.
    static func variables(
        proxy: String, _ settings: Configuration, _ environment: [String: String], trust: TrustFiles? = nil,
        isEnclosed: Bool = false
    ) throws -> [String: String] {
        let proxy = "http://\(proxy)"
        let direct = NoProxyList(
            extending: [environment["no_proxy"], environment["NO_PROXY"]], for: settings, isEnclosed: isEnclosed)
        for warning in direct.warnings { ErrorOutput.warning(warning) }
        // Sets both cases: curl reads only http_proxy (because of httpoxy), and some programs only HTTP_PROXY.
        var variables = [
            "http_proxy": proxy, "HTTP_PROXY": proxy, "no_proxy": direct.value, "NO_PROXY": direct.value,
            "NODE_USE_ENV_PROXY": "1",
            "JAVA_TOOL_OPTIONS": JavaProxyOptions.adding(to: environment, proxy, direct, tls: settings.opensTLS),
        ]
        // grpc_proxy stays unset: gRPC then uses https_proxy or http_proxy. With an empty one it would bypass the proxy.
        // Without interception, a request for https gets no token, so https_proxy stays unset.
        guard settings.opensTLS else { return variables }
        variables["https_proxy"] = proxy
        variables["HTTPS_PROXY"] = proxy
        guard !settings.interceptedNames.isEmpty else { return variables }
        do {
            let trust = try trust ?? .written(for: settings, environment)
            let base = environment.merging(variables) { $1 }
            return variables.merging(try trust.variables(for: base)) { $1 }
        } catch { throw ExitStatus.failure.error("the proxy's certificates: \(error)") }
    }

    /// Returns the exit code for a program that can't be run, and prints the fault.
    func exitCode(of failure: SystemCallError) -> ExitCode { Self.exitCode(of: failure, running: program[0]) }

    static func exitCode(of failure: SystemCallError, running program: String) -> ExitCode {
        (failure.isNoSuchFile ? ExitStatus.noSuchProgram : .notExecutable).error(
            "can't run \(program): \(failure.sentence)")
    }

    /// Returns name and password as in `alice:secret@`, percent-encoded; an empty string if the proxy has no users.
    func credentials(_ settings: Configuration, _ environment: [String: String]) throws -> String {
        let users = settings.proxy.users
        guard let user else {
            guard !users.isEmpty else { return "" }
            throw ExitStatus.failure.error(
                "proxy.users requires a user: add --user NAME, with one of \(Self.list(users))")
        }
        guard let source = users[user] else {
            throw ExitStatus.failure.error(
                users.isEmpty
                    ? "the configuration has no proxy.users; leave out --user"
                    : "proxy.users has no such user; it has \(Self.list(users))")
        }
        let secret: [UInt8]
        do {
            if case .command(let words, _) = source {
                let command = SecretCommand(words: words, environment: ChildEnvironment.of(environment, settings))
                secret = try command.run().revealedBytes
            } else if case .remote(let server) = source {
                throw SecretProviderError(
                    "\(server) gives the password to the running proxy only: write it as {file: PATH}")
            } else {
                guard let value = try source.value(environment) else {
                    throw ExitStatus.failure.error("proxy.users: the \(source) of \(user) is not set")
                }
                secret = value.withSpan { [UInt8](copying: $0) }
            }
        } catch let code as ExitCode {
            throw code
        } catch { throw ExitStatus.failure.error("proxy.users: \(error)") }
        return "\(PercentEncoding.uri.encode(user)):\(PercentEncoding.uri.encode(secret))@"
    }

    private static func list(_ users: [String: SecretSource]) -> String {
        users.keys.sorted().joined(separator: ", ")
    }

    /// Returns the first TCP listener with a fixed port and without TLS, such as `127.0.0.1:8080`. Few programs speak
    /// TLS with a proxy.
    static func authority(_ settings: Configuration) -> String? {
        for address in settings.proxy.listen where settings.tls(of: address, upstream: nil) == nil {
            guard case .tcp(let host, let port) = address, port != 0 else { continue }
            return ListenAddress.reachable(host: host, port: "\(port)")
        }
        return nil
    }

    private static func lackOfAuthority(_ settings: Configuration) -> any Error {
        let addresses = settings.proxy.listen
        if addresses.contains(where: { settings.tls(of: $0, upstream: nil) != nil }) {
            return ExitStatus.failure.error(
                "the proxy has no listener without TLS, and few programs speak TLS with a proxy: add an address such as "
                    + "127.0.0.1:8080 to proxy.listen")
        }
        let onlySockets = addresses.allSatisfy(\.isUnix)
        return ExitStatus.failure.error(
            onlySockets
                ? "the proxy listens only on a Unix socket, which http_proxy can't name: add an address such as "
                    + "127.0.0.1:8080 to proxy.listen"
                : "proxy.listen has no fixed port; write a port other than 0")
    }
}
