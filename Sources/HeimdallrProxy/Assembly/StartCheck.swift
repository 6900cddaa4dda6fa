import Administration
import Configuration
import FileSystem
import Heimdallr
import Proxy
import Reactor

/// Finds faults of folders, files and addresses that would prevent a start on this machine. Binds no address, creates
/// no file and runs no command.
struct StartCheck {
    let configuration: Configuration
    let passed: [PassedSocket]
    /// Name of the configuration, for faults whose position in the file is unknown.
    let file: String

    typealias Problem = ConfigurationError.Problem
    typealias Faults = (problems: [Problem], warnings: [Problem])

    /// Returns the errors and warnings that a start would report. Blocks during name look-ups and file access.
    func faults() async -> Faults {
        var faults: Faults = ([], [])
        /// - Parameters:
        ///   - name: as in `KeyUses.opened`.
        ///   - isWarning: whether a start may succeed now: the systemd unit may have more rights, or the fault may end.
        ///   - paths: paths whose lack causes this fault.
        func note(_ error: any Error, _ name: String?, isWarning: Bool = false, of paths: [String?] = []) {
            var problem = name.flatMap { configuration.keyUses.opened[$0] } ?? Problem(file: file, message: "")
            problem.message = "\(error)"
            problem.mayPass = paths.compactMap(\.self).contains(where: AwaitedFile.isAwaited)
            if isWarning { faults.warnings.append(problem) } else { faults.problems.append(problem) }
        }
        do throws(TokenStoreError) {
            try await StoreAssembly(configuration: configuration, secrets: SecretCache(configuration)).check()
        } catch {
            let directory = if case .file(let directory, _) = configuration.store { directory } else { String?.none }
            note(
                error, "store", isWarning: error.kind != .misconfigured || Self.isMadeByUnit(directory),
                of: configuration.store.secrets.map(\.path) + [directory.map(AwaitedFile.folder)])
        }
        if case .file(let path) = configuration.audit {
            do { try AppendedFile.check(path) } catch { note(error, "audit", of: [AwaitedFile.folder(of: path)]) }
        }
        for client in configuration.clients {
            guard let settings = client.file else { continue }
            do throws(FileSystem.Fault) { try PublishedFile(settings.path).check() } catch {
                var problem = Problem(file: file, message: "clients.\(client.name).file: \(error)")
                problem.mayPass = !FileSystem.exists(AwaitedFile.folder(of: settings.path))
                if problem.mayPass { faults.warnings.append(problem) } else { faults.problems.append(problem) }
            }
            if let group = settings.group, FileSystem.groupID(of: group) == nil {
                faults.problems.append(
                    Problem(
                        file: file, message: "clients.\(client.name).file: there is no group \(group) on this machine"))
            }
        }
        do { try AuthorityStore.check(configuration) } catch {
            let directory = configuration.interception?.store?.directory
            note(
                error, "interception", isWarning: Self.isMadeByUnit(directory),
                of: [directory.map(AwaitedFile.folder)])
        }
        faults.problems += configuration.allServerTLS.compactMap(ListenerCertificate.fault)
        for error in ProxyServer.check(configuration, passed: passed) {
            note(error, error.listener?.description, isWarning: error.isForbidden)
        }
        do {
            try AdministrationAssembly.addresses(configuration, passed).map(Administration.check)
        } catch { note(error, "admin", isWarning: Self.isMadeByUnit(configuration.admin?.socket)) }
        return faults
    }

    /// Whether `path` is in a missing folder that a systemd unit creates at the start (RuntimeDirectory=,
    /// StateDirectory=, systemd.exec(5)).
    private static func isMadeByUnit(_ path: String?) -> Bool {
        guard let path, let parent = ["/run/", "/var/lib/"].first(where: path.hasPrefix),
            let name = path.dropFirst(parent.count).split(separator: "/").first
        else { return false }
        return !FileSystem.exists(parent + name)
    }
}
