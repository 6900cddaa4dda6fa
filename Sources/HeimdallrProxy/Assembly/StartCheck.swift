import Administration
import Configuration
import FileSystem
import Heimdallr
import Logging
import Proxy
import Reactor

/// Finds what a start would refuse that the configuration does not show by itself: folders, files and addresses of this
/// machine. Takes, makes and runs nothing.
struct StartCheck {
    let configuration: Configuration
    let passed: [PassedSocket]
    let secrets: SecretShelf

    init(_ configuration: Configuration, passed: [PassedSocket]) {
        self.configuration = configuration
        self.passed = passed
        secrets = SecretShelf(configuration)
    }

    /// The sentences of the start: its errors, and its warnings. Blocks for names and the disk.
    func faults() async -> (problems: [String], warnings: [String]) {
        var (problems, warnings): ([String], [String]) = ([], [])
        do throws(TokenStoreError) {
            try await StoreAssembly(
                settings: configuration.store, secrets: secrets,
                logger: Logger(label: "check") { _ in SwiftLogNoOpLogHandler() },
                trustAnchors: configuration.trustAnchorsFile
            ).check()
        } catch {
            var isLasting = error.kind == .misconfigured
            if case .file(let directory, _) = configuration.store, Self.isMadeByUnit(directory) { isLasting = false }
            if isLasting { problems.append("\(error)") } else { warnings.append("\(error)") }
        }
        do { try AuditStream.check(configuration.audit) } catch { problems.append("\(error)") }
        for error in ProxyServer.check(configuration, passed: passed) {
            // A unit may give the port, or the right to it, to the proxy and not to the user who runs this.
            if error.isForbidden { warnings.append("\(error)") } else { problems.append("\(error)") }
        }
        do {
            try AdministrationAssembly.places(configuration, passed).map(Administration.check)
        } catch {
            let isMade = configuration.admin?.socket.map(Self.isMadeByUnit) ?? false
            if isMade { warnings.append("\(error)") } else { problems.append("\(error)") }
        }
        return (problems, warnings)
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
