import Administration
import Configuration
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
            if error.kind == .misconfigured { problems.append("\(error)") } else { warnings.append("\(error)") }
        }
        do { try AuditStream.check(configuration.audit) } catch { problems.append("\(error)") }
        for error in ProxyServer.check(configuration, passed: passed) {
            // A unit may give the port, or the right to it, to the proxy and not to the user who runs this.
            if error.isForbidden { warnings.append("\(error)") } else { problems.append("\(error)") }
        }
        do {
            try AdministrationAssembly.places(configuration, passed).map(Administration.check)
        } catch { problems.append("\(error)") }
        return (problems, warnings)
    }
}
