import ArgumentParser
import Configuration
import Cryptography
import CurlTransport
import FileSystem
import Heimdallr
import Logging
import Proxy
import Reactor

/// The source of the configuration: the named file, else `config.yaml` of the current folder, else the environment.
enum ConfigurationSource: Sendable, Equatable {
    case file(String)
    case environment

    static let defaultFile = "config.yaml"

    /// - Throws: a usage error with advice, if there is no configuration.
    static func choose(
        named: String?, environment: [String: String], fileExists: (String) -> Bool = FileSystem.exists
    ) throws(ValidationError) -> ConfigurationSource {
        if let named { return .file(named) }
        if fileExists(defaultFile) { return .file(defaultFile) }
        if environment["HEIMDALLR_UPSTREAM"] != nil { return .environment }
        throw ValidationError(
            """
            There is no configuration: this folder has no config.yaml, and HEIMDALLR_UPSTREAM is not set.
            Do one of these:
              heimdallr-proxy demo                   see it work; needs nothing
              heimdallr-proxy --config PATH          name a configuration file
              HEIMDALLR_UPSTREAM=https://api.example.com HEIMDALLR_TOKEN_ENDPOINT=https://idp.example.com/token \\
              HEIMDALLR_CLIENT_ID=... HEIMDALLR_CLIENT_SECRET=... heimdallr-proxy
            """)
    }

    var file: String? { if case .file(let path) = self { path } else { nil } }
    /// The file's path, or `environment`.
    var name: String { file ?? "environment" }
    var wantsPlayground: Bool { file.map { Configuration.wantsPlayground(file: $0) } ?? false }

    /// Reads and checks the configuration. Prints its problems and warnings to standard error.
    /// - Parameters:
    ///   - passed: listening sockets that the process was started with.
    ///   - logs: whether a proxy is about to start. If the configuration can be read, the report has its log format.
    /// - Throws: `ExitStatus.badConfiguration`, after printing the problems that `readAgain` would throw. If a proxy is
    ///   about to start, and all problems may pass, `ExitStatus.failure`.
    func load(environment: [String: String], passed: [PassedSocket] = [], logs: Bool = false) throws -> Configuration {
        var report = ConfigurationReport.plain
        do throws(ConfigurationError) {
            let (configuration, warnings) = try read(environment)
            if logs { report = ConfigurationReport(isJSON: configuration.log.format == .json) }
            let keys = KeyCheck(configuration.keyUses, environment: environment)
            for warning in Self.variableWarnings + warnings + keys.warnings { report.warn(warning) }
            try judge(configuration, keys, environment, passed)
            return configuration
        } catch {
            for warning in error.warnings { report.warn(warning) }
            report.fail(error.problems, starting: logs)
            throw (logs && error.problems.allSatisfy(\.mayPass) ? ExitStatus.failure : .badConfiguration).error
        }
    }

    /// Reads what a program needs to use the proxy: its user may read neither the secrets nor the variables of the proxy.
    /// - Throws: `ExitStatus.badConfiguration`, after printing the problems.
    func loadForPrograms(_ environment: [String: String]) throws -> Configuration {
        do throws(ConfigurationError) {
            let (configuration, warnings) = try read(environment, isForPrograms: true)
            for warning in warnings { ConfigurationReport.plain.warn(warning) }
            return configuration
        } catch {
            ConfigurationReport.plain.fail(error.problems, starting: false)
            throw ExitStatus.badConfiguration.error
        }
    }

    /// Returns the faults of this machine that would prevent a start with this configuration, and warnings.
    func startFaults(_ configuration: Configuration, passed: [PassedSocket]) async -> StartCheck.Faults {
        await StartCheck(configuration: configuration, passed: passed, file: name).faults()
    }

    /// Warnings about environment variables that would make libcurl write secrets to files.
    static var variableWarnings: [ConfigurationError.Problem] {
        LibcurlGlobal.removedVariables.map { name in
            .init(
                file: name,
                message: "\(name) is ignored: it would write the keys of all TLS connections to a file. Unset it")
        }
    }

    /// Reads and checks the configuration, and prints nothing.
    /// - Throws: all problems of the first step that finds any: the reader; keys and passed sockets; the connection
    ///   string of the store; the admin token.
    func readAgain(
        environment: [String: String], passed: [PassedSocket]
    ) throws(ConfigurationError) -> ReadConfiguration {
        let (configuration, warnings) = try read(environment)
        let keys = KeyCheck(configuration.keyUses, environment: environment)
        try judge(configuration, keys, environment, passed)
        return (configuration, warnings + keys.warnings)
    }

    private func judge(
        _ configuration: Configuration, _ keys: KeyCheck, _ environment: [String: String], _ passed: [PassedSocket]
    ) throws(ConfigurationError) {
        let problems =
            keys.problems
            + configuration.faults(ofPassed: passed).map { .init(file: ServiceManager.socketsVariable, message: $0) }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
        let token = configuration.admin?.token
        if let fault = StoreCheck.fault(configuration, environment: environment) {
            throw self.fault(fault, of: configuration.store.secrets)
        }
        if let fault = AdminTokenRule.fault(token, environment: environment) { throw self.fault(fault, of: [token]) }
    }

    private func fault(_ fault: String, of sources: [SecretSource?]) -> ConfigurationError {
        var problem = ConfigurationError.Problem(file: name, message: fault)
        problem.mayPass = sources.compactMap { $0?.path }.contains(where: AwaitedFile.isAwaited)
        return ConfigurationError(problems: [problem])
    }

    /// Returns the settings of the admin section. In a file, checks nothing else, so the caller needs no secrets.
    func admin(_ environment: [String: String]) throws(ConfigurationError) -> AdminSettings? {
        guard let file else { return try read(environment).configuration.admin }
        return try Configuration.adminSettings(file: file, environment: environment)
    }

    /// Returns the addresses of `proxy.listen`. In a file, checks nothing else.
    func proxyListeners(_ environment: [String: String]) throws(ConfigurationError) -> [ListenAddress] {
        guard let file else { return try read(environment).configuration.proxy.listen }
        return try Configuration.proxyListeners(file: file, environment: environment)
    }

    private func read(
        _ environment: [String: String], isForPrograms: Bool = false
    ) throws(ConfigurationError) -> ReadConfiguration {
        if let file {
            return try Configuration.load(file: file, environment: environment, isForPrograms: isForPrograms)
        }
        guard let found = try Configuration.fromEnvironment(environment, isForPrograms: isForPrograms) else {
            throw ConfigurationError(problems: [
                .init(file: "HEIMDALLR_UPSTREAM", message: "not set: give the API's URL")
            ])
        }
        return found
    }
}

/// The rule for the length of `admin.token`, which gives access to the admin page.
enum AdminTokenRule {
    /// Minimum number of octets. 16 octets of base64 have 96 random bits.
    static let minimum = 16

    /// - Returns: the fault, with advice. `nil` also for a command, and for an unreadable token (reported elsewhere).
    static func fault(_ token: SecretSource?, environment: [String: String]) -> String? {
        guard let count = try? token?.value(environment)?.count, count < minimum else { return nil }
        return fault(count)
    }

    /// Returns a provider that checks the length at each use, because a command or a file may give another token later.
    static func guarding(_ token: any SecretProvider) -> any SecretProvider {
        SecretClosureProvider {
            let secret = try await token.secret()
            guard secret.count >= minimum else { throw SecretProviderError(fault(secret.count)) }
            return secret
        }
    }

    private static func fault(_ count: Int) -> String {
        "admin.token: it has \(count) octets, so it can be guessed: use at least \(minimum), for example from "
            + "`head -c 24 /dev/urandom | base64`"
    }
}

/// Prints problems and warnings of a configuration to standard error: in the format of compilers, or as JSON lines of
/// the log.
struct ConfigurationReport {
    let isJSON: Bool

    static let plain = ConfigurationReport(isJSON: false)

    func warn(_ problem: ConfigurationError.Problem) { write(problem, .warning) }

    /// - Parameter isStart: whether the command would have started something.
    func fail(_ problems: [ConfigurationError.Problem], starting isStart: Bool) {
        for problem in problems { write(problem, .error) }
        guard !isJSON else { return }
        let outcome = isStart ? "; nothing was started." : "."
        ErrorOutput.write(.error, "\(problems.count.counted("problem")) in the configuration\(outcome)")
    }

    private func write(_ problem: ConfigurationError.Problem, _ level: Logger.Level) {
        guard isJSON else { return ErrorOutput.write(level, "\(level): \(problem)") }
        let line = LogLine.bytes(.json, time: .now, level: level, message: problem.message, fields: problem.fields)
        _ = LineDescriptor.standardError.take(Array(Journal.prefix(level).utf8) + line)
    }
}

extension ConfigurationError.Problem {
    /// Position of the problem, as fields of a log line.
    var fields: Logger.Metadata {
        var fields: Logger.Metadata = ["file": "\(file)"]
        if let line { fields["line"] = .stringConvertible(line) }
        if let column { fields["column"] = .stringConvertible(column) }
        return fields
    }
}
