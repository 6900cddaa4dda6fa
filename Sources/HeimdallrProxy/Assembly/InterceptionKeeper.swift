import Administration
import Configuration
import Cryptography
import CurlTransport
import FileSystem
import Glibc
import Heimdallr
import Logging
import Proxy
import Reactor
import Synchronization
import WireText

/// Keeps the certificates of intercepted hosts, and the trust files for programs.
final class InterceptionKeeper: Sendable {
    private struct State {
        var current: Interception?
        /// Location of the stored authorities.
        var store: InterceptionSettings.Store?
        var trust: TrustFolder?
    }

    private let isForOneProgram: Bool
    private let secrets: SecretCache
    private let logger: Logger
    private let state = Mutex(State())

    init(isForOneProgram: Bool = false, secrets: SecretCache, logger: Logger) {
        self.isForOneProgram = isForOneProgram
        self.secrets = secrets
        self.logger = logger
    }

    /// The authorities for a configuration.
    struct Prepared: Sendable {
        var interception: Interception?
        /// Stores new authorities. Programs may trust the stored ones, so this is the last step that can fail.
        var save: @Sendable () async throws -> Void = {}
    }

    /// Returns the authorities for a configuration: the current authorities if they fit, else stored or new ones. None if
    /// the configuration opens no TLS.
    func prepare(_ configuration: Configuration) async throws -> Prepared {
        guard configuration.opensTLS else { return Prepared() }
        let names = configuration.interceptedNames
        // The current authorities count only for the same folder: another folder may hold authorities for these names.
        let store = configuration.interception?.store
        let current = state.withLock { $0.store == store ? $0.current : nil }
        return try await Self.reporting(configuration) {
            var kept: (path: String, key: SealingKey)?
            if let store {
                let text = try await StoreAssembly(configuration: configuration, secrets: secrets).secret(
                    store.key, "interception.key")
                kept = (store.directory, try TokenStoreKey(text).sealing)
            }
            return try await BlockingWork.run { [kept] in
                let store = try kept.map { try AuthorityStore(path: $0.path, key: $0.key) }
                let (interception, unsaved) = try AuthorityStore.authorities(for: names, current: current, in: store)
                return Prepared(interception: interception) {
                    try await Self.reporting(configuration) { try await BlockingWork.run { try store?.save(unsaved) } }
                }
            }
        }
    }

    /// Runs work on the stored authorities. Names the section of the configuration in a fault.
    private static func reporting<Value>(
        _ configuration: Configuration, _ work: () async throws -> Value
    ) async throws -> Value {
        do { return try await work() } catch {
            var problem = configuration.keyUses.opened["interception"] ?? .init(file: "interception", message: "")
            problem.message = "interception: \(error)"
            throw ConfigurationError(problems: [problem])
        }
    }

    /// Puts these authorities into use, and writes the trust files. Without authorities, removes the files. If files
    /// can't be written, the proxy still serves requests, but `exec` has no files to name.
    func use(_ interception: Interception?, _ configuration: Configuration) async {
        let (former, trust) = state.withLock { state in
            defer { (state.current, state.store) = (interception, configuration.interception?.store) }
            return (state.current, state.trust)
        }
        if let former, let interception, !Set(interception.roots).isSubset(of: former.roots) {
            logger.warning(
                "there is a new authority for intercepted TLS: its names or its expiry have changed",
                metadata: ["what_to_do": "restart the programs that trust the former authority"])
        }
        guard let interception, !interception.roots.isEmpty else { return await end() }
        do {
            let path = try folder(configuration)
            guard former?.roots != interception.roots || path != trust?.files.folder else { return }
            let made = try await BlockingWork.run {
                let made = try TrustFolder(roots: Array(interception.rootsPEM.utf8), folder: path)
                if trust == nil { made.removeAbandoned() }
                return made
            }
            if trust?.files.folder != path { await end() }
            state.withLock { $0.trust = made }
            // Begins to watch them: the files hold them.
            _ = SystemAuthorities.shared.current
            var fields: Logger.Metadata = [
                "hosts": .stringConvertible(interception.certificates.leaves.count), "trust": "\(path)",
            ]
            if let domains = interception.intermediate?.domains.names {
                fields["domains"] = .stringConvertible(domains.count)
            }
            logger.info("TLS of programs is opened", metadata: fields)
        } catch {
            logger.error(
                "the trust files for intercepted programs can't be written", metadata: ["reason": "\(error)"])
        }
    }

    /// Writes the files that make programs trust our roots again, because they hold the system's authorities, too. Blocks.
    func systemAuthoritiesChanged() {
        guard let files else { return }
        do { try files.writeDefaults() } catch {
            logger.error("the trust files for intercepted programs can't be written", metadata: ["reason": "\(error)"])
        }
    }

    var files: TrustFiles? { state.withLock { $0.trust?.files } }

    /// Returns the folder for the trust files. Its name contains the first TCP address with a fixed port in
    /// `proxy.listen`. Without such an address, or for one program, it contains this process's ID.
    private func folder(_ configuration: Configuration) throws -> String {
        let known = isForOneProgram ? nil : configuration.trustName
        let (port, kind) = known ?? (0, TrustFolder.nameEnd("\(getpid())"))
        if let folder = TrustFiles.systemFolder(port: port, kind: kind) { return folder }
        return TrustFolderPath.forWriting(
            try AdminSocket.prepareDefault(
                port: port, kind: kind, runtimeDirectory: ProcessEnvironment.value(of: "XDG_RUNTIME_DIR")
            ).path)
    }

    func end() async {
        let trust = state.withLock { state in
            defer { state.trust = nil }
            return state.trust
        }
        if let trust { await BlockingWork.run { trust.end() } }
    }
}

extension TrustFiles {
    /// Returns root's folder for trust files. apt reads them as the user `_apt`, who can't enter the runtime folder.
    /// - Returns: `nil` if this user is not root, or if /run is writable for other users or not for root.
    fileprivate static func systemFolder(port: UInt16, kind: String) -> String? {
        let parent = "/run"
        guard ProcessIdentity.user == 0, let status = FileStatus(of: parent), status.owner == 0,
            status.mode & 0o022 == 0, FileSystem.isWritable(parent)
        else { return nil }
        return "\(parent)/heimdallr-proxy-\(port).\(kind)"
    }

    /// Returns the trust files that a running proxy with this configuration has written.
    static func written(
        for configuration: Configuration, _ environment: [String: String]
    ) throws(Fault) -> TrustFiles {
        if let name = configuration.trustName {
            let folders = AdminSocket.candidates(
                port: name.port, kind: name.kind, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
            for folder in [systemFolder(port: name.port, kind: name.kind)].compactMap(\.self) + folders {
                for folder in TrustFolderPath.candidates(folder) {
                    if let files = try written(in: folder) { return files }
                }
            }
        }
        throw Fault(description: "no running proxy has written trust files: start the proxy first, or add --serve")
    }
}

extension Configuration {
    /// Parts of the name of the folder with the trust files; `nil` if no port is known before the start.
    fileprivate var trustName: (port: UInt16, kind: String)? {
        for case .tcp(let host, let port) in proxy.listen where port != 0 {
            return (port, TrustFolder.nameEnd(host.replacing(":", with: "-")))
        }
        return nil
    }
}
