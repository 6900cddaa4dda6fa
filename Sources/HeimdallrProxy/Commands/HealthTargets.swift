import Administration
import Configuration

/// The addresses at which a running proxy reports its health.
enum HealthTargets: Equatable {
    enum Target: Equatable {
        case port(host: String, port: UInt16)
        case socket(String)
    }

    /// The port comes first: it answers any user of the machine, the socket only the user of the proxy.
    case administration([Target])
    /// Listeners for programs, where there is no administration.
    case listeners([ListenAddress])
    /// No address is known: the reason, and what to do.
    case unknown(String)

    init(_ source: ConfigurationSource, environment: [String: String]) {
        do throws(ConfigurationError) {
            switch source {
            case .file(let file): self = try Self.inFile(file, environment)
            case .environment: self = try Self.inEnvironment(environment)
            }
        } catch {
            let reason = error.problems.first.map { "\($0)" } ?? "the configuration can't be read"
            // It may have been good when the proxy began.
            guard case .file(let file) = source else {
                self = .unknown(reason)
                return
            }
            let guess = Self.guess(file: file, environment)
            self = guess.isEmpty ? .unknown(reason) : .administration(guess)
        }
    }

    private static func inFile(
        _ file: String, _ environment: [String: String]
    ) throws(ConfigurationError) -> HealthTargets {
        guard let admin = try Configuration.adminSettings(file: file, environment: environment) else {
            return .listeners(try Configuration.proxyListeners(file: file, environment: environment))
        }
        return .administration(targets(admin, environment))
    }

    private static func inEnvironment(_ environment: [String: String]) throws(ConfigurationError) -> HealthTargets {
        guard let found = try Configuration.fromEnvironment(environment)?.configuration else {
            return .unknown("HEIMDALLR_UPSTREAM is not set: give the API's URL, or --config PATH")
        }
        guard let admin = found.admin else { return .listeners(found.proxy.listen) }
        return .administration(targets(admin, environment))
    }

    private static func targets(_ admin: AdminSettings, _ environment: [String: String]) -> [Target] {
        var targets: [Target] = []
        var port: UInt16 = 0
        if case .tcp(let host, let number) = admin.listen {
            port = number
            // Port 0 is chosen by the kernel at the start.
            if port != 0 { targets.append(.port(host: host, port: port)) }
        }
        let sockets =
            admin.socket.map { [$0] }
            ?? AdminSocket.candidates(port: port, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
        return targets + sockets.map { .socket($0) }
    }

    private static func guess(file: String, _ environment: [String: String]) -> [Target] {
        let port = AdminGuess.port(file: file).map { [Target.port(host: "127.0.0.1", port: $0)] } ?? []
        return port + AdminGuess.sockets(file: file, environment: environment).map { .socket($0) }
    }
}
