import Administration
import Configuration
import FileSystem
import Heimdallr
import Proxy
import Reactor

/// Finds what a start would refuse that the configuration does not show by itself: folders, files and addresses of this
/// machine. Takes, makes and runs nothing.
struct StartCheck {
    let configuration: Configuration
    let passed: [PassedSocket]
    let secrets: SecretCache
    /// For faults whose position in the file is unknown.
    let file: String

    typealias Problem = ConfigurationError.Problem

    init(_ configuration: Configuration, file: String, passed: [PassedSocket]) {
        self.configuration = configuration
        self.file = file
        self.passed = passed
        secrets = SecretCache(configuration)
    }

    /// Errors and warnings of a start, in its own words. Blocks for names and the disk.
    func faults() async -> (problems: [Problem], warnings: [Problem]) {
        var (problems, warnings): ([Problem], [Problem]) = ([], [])
        do throws(TokenStoreError) {
            try await StoreAssembly(configuration, secrets).check()
        } catch {
            var isLasting = error.kind == .misconfigured
            if case .file(let directory, _) = configuration.store, Self.isMadeByUnit(directory) { isLasting = false }
            if isLasting { problems.append(problem(error, "store")) } else { warnings.append(problem(error, "store")) }
        }
        do { try AuditStream.check(configuration.audit) } catch { problems.append(problem(error, "audit")) }
        do { try AuthorityStore.check(configuration) } catch {
            let isMade = configuration.interception?.store.map { Self.isMadeByUnit($0.directory) } ?? false
            if isMade {
                warnings.append(problem(error, "interception"))
            } else {
                problems.append(problem(error, "interception"))
            }
        }
        problems += configuration.allServerTLS.compactMap(ListenerCertificates.fault)
        for error in ProxyServer.check(configuration, passed: passed) {
            // A unit may give the port, or the right to it, to the proxy and not to the user who runs this.
            let fault = problem(error, error.listener?.description)
            if error.isForbidden { warnings.append(fault) } else { problems.append(fault) }
        }
        do {
            try AdministrationAssembly.addresses(configuration, passed).map(Administration.check)
        } catch {
            let isMade = configuration.admin?.socket.map(Self.isMadeByUnit) ?? false
            if isMade { warnings.append(problem(error, "admin")) } else { problems.append(problem(error, "admin")) }
        }
        return (problems, warnings)
    }

    /// - Parameter name: as in `KeyUses.opened`.
    private func problem(_ error: any Error, _ name: String?) -> Problem {
        var problem = name.flatMap { configuration.keyUses.opened[$0] } ?? Problem(file: file, message: "")
        problem.message = "\(error)"
        return problem
    }

    /// Whether `path` lies in a folder that a unit makes at the start (RuntimeDirectory=, StateDirectory=, systemd.exec(5))
    /// and that is missing now.
    private static func isMadeByUnit(_ path: String) -> Bool {
        for parent in ["/run/", "/var/lib/"] where path.hasPrefix(parent) {
            guard let name = path.dropFirst(parent.count).split(separator: "/").first else { continue }
            return !FileSystem.exists(parent + name)
        }
        return false
    }
}
