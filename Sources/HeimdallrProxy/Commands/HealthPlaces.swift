import Administration
import Configuration

/// Where a running proxy can be asked how it is.
enum HealthPlaces: Equatable {
    enum Place: Equatable {
        case port(host: String, port: UInt16)
        case socket(String)
    }

    /// The port first: it tells any user of the machine, while the socket is for the proxy's own.
    case administration([Place])
    /// There is no administration: where programs connect to.
    case listeners([ListenAddress])
    /// Nothing says so: why, and what to do.
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
    ) throws(ConfigurationError) -> HealthPlaces {
        guard let admin = try Configuration.adminSettings(file: file, environment: environment) else {
            return .listeners(try Configuration.proxyListeners(file: file, environment: environment))
        }
        return .administration(places(admin, environment))
    }

    private static func inEnvironment(_ environment: [String: String]) throws(ConfigurationError) -> HealthPlaces {
        guard let found = try Configuration.fromEnvironment(environment)?.configuration else {
            return .unknown("HEIMDALLR_UPSTREAM is not set: give the API's URL, or --config PATH")
        }
        guard let admin = found.admin else { return .listeners(found.proxy.listen) }
        return .administration(places(admin, environment))
    }

    private static func places(_ admin: AdminSettings, _ environment: [String: String]) -> [Place] {
        var places: [Place] = []
        var port: UInt16 = 0
        if case .tcp(let host, let number) = admin.listen {
            port = number
            // One that the kernel chose is known to nobody.
            if port != 0 { places.append(.port(host: host, port: port)) }
        }
        let sockets =
            admin.socket.map { [$0] }
            ?? AdminSocket.candidates(port: port, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
        return places + sockets.map { .socket($0) }
    }

    private static func guess(file: String, _ environment: [String: String]) -> [Place] {
        let port = AdminGuess.port(file: file).map { [Place.port(host: "127.0.0.1", port: $0)] } ?? []
        return port + AdminGuess.sockets(file: file, environment: environment).map { .socket($0) }
    }
}
