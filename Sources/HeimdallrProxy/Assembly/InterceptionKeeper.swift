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
        /// Files that were written before the ports opened.
        var early: TrustFolder?
        var fault: TrustFiles.Fault?
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
            let store = try await AuthorityStore.of(configuration, secrets)
            return try await BlockingWork.run {
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

    /// Writes the trust files before the ports open, so that a program that sees the port finds the files. If another
    /// process uses the folder, only `use` writes: this start may still fail, and must not replace that process's files.
    func prepareFiles(_ interception: Interception?, _ configuration: Configuration) async {
        guard let interception, !interception.roots.isEmpty, let path = try? folder(configuration) else { return }
        let made = await BlockingWork.run {
            try? TrustFolder(roots: Array(interception.rootsPEM.utf8), folder: path, isAlone: true)
        }
        state.withLock { $0.early = made }
    }

    /// Puts these authorities into use, and writes the trust files. Without authorities, removes the files. If files
    /// can't be written, the proxy still serves requests, but `exec` has no files to name.
    func use(_ interception: Interception?, _ configuration: Configuration) async {
        let (former, trust, early) = state.withLock { state in
            defer {
                (state.current, state.store, state.early) = (interception, configuration.interception?.store, nil)
            }
            return (state.current, state.trust, state.early)
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
                early?.share()
                let made = try early ?? TrustFolder(roots: Array(interception.rootsPEM.utf8), folder: path)
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
        } catch { report(error, isLogged: !isForOneProgram) }
    }

    /// Keeps the fault, and logs it, unless `exec --serve` then tells it in place of starting its program.
    private func report(_ error: any Error, isLogged: Bool = true) {
        state.withLock { $0.fault = TrustFiles.Fault(description: "\(error): \(Self.remedy)") }
        guard isLogged else { return }
        logger.error(
            "the trust files for intercepted programs can't be written",
            metadata: ["reason": "\(error)", "what_to_do": "\(Self.remedy)"])
    }

    private static let remedy =
        "set XDG_RUNTIME_DIR to a folder that only the proxy's user may enter and that can be written, for example on a tmpfs"

    /// Returns the trust files for a program that this process starts.
    /// - Throws: the reason why they could not be written.
    func writtenFiles() throws(TrustFiles.Fault) -> TrustFiles? {
        let (trust, fault) = state.withLock { ($0.trust, $0.fault) }
        if trust == nil, let fault { throw fault }
        return trust?.files
    }

    /// Writes the files that make programs trust our roots again, because they hold the system's authorities, too. Blocks.
    func systemAuthoritiesChanged() {
        guard let files else { return }
        do { try files.writeDefaults() } catch { report(error) }
    }

    var files: TrustFiles? { state.withLock { $0.trust?.files } }

    /// Returns the folder for the trust files. Its name contains the first TCP address with a fixed port in
    /// `proxy.listen`. Without such an address, or for one program, it contains this process's ID.
    private func folder(_ configuration: Configuration) throws(TrustFiles.Fault) -> String {
        let known = isForOneProgram ? nil : configuration.trustName
        let (port, kind) = known ?? (0, TrustFolder.nameEnd("\(getpid())"))
        if let folder = TrustFiles.systemFolder(port: port, kind: kind) { return folder }
        if let folder = SharedRoots.openFolder(ProcessEnvironment.all) {
            return TrustFolderPath.forWriting("\(folder)/\(AdminSocket.name(port: port, kind: kind))")
        }
        do throws(AdministrationError) {
            return TrustFolderPath.forWriting(
                try AdminSocket.prepareDefault(
                    port: port, kind: kind, runtimeDirectory: ProcessEnvironment.value(of: "XDG_RUNTIME_DIR")
                ).path)
        } catch {
            throw TrustFiles.Fault(description: "no folder for them can be made in $XDG_RUNTIME_DIR or in /tmp")
        }
    }

    func end() async {
        let trust = state.withLock { state in
            defer { (state.trust, state.early) = (nil, nil) }
            return state.trust ?? state.early
        }
        if let trust { await BlockingWork.run { trust.end() } }
    }
}

extension TrustFiles {
    /// Returns root's folder for trust files. apt reads them as the user `_apt`, who can't enter the runtime folder.
    /// - Returns: `nil` if this user is not root, or if /run is writable for other users or not for root.
    static func systemFolder(port: UInt16, kind: String) -> String? {
        let parent = "/run"
        guard ProcessIdentity.user == 0, let status = FileStatus(of: parent), status.owner == 0,
            status.mode & 0o022 == 0, FileSystem.isWritable(parent)
        else { return nil }
        return "\(parent)/heimdallr-proxy-\(port).\(kind)"
    }

    /// Longest wait for the trust files of a proxy that listens already.
    private static let patience = Duration.seconds(15)

    /// Returns the trust files that a running proxy with this configuration has written. Blocks while a proxy listens
    /// that has not written them yet: for a socket of a service manager, the connection is what starts the proxy.
    static func written(
        for configuration: Configuration, _ environment: [String: String]
    ) throws(Fault) -> TrustFiles {
        let deadline = ContinuousClock.now + patience
        var nextLook = ContinuousClock.now
        while true {
            if let files = try writtenNow(for: configuration, environment) { return files }
            guard let address = configuration.proxy.listen.first(where: \.hasFixedPort) else { break }
            // Rarely, because a proxy that is starting accepts none of these connections, and its queue is limited.
            if nextLook <= .now {
                guard SocketConnection.isAccepted(at: address) else { break }
                nextLook = .now + .milliseconds(500)
            }
            guard ContinuousClock.now < deadline else {
                throw Fault(description: lack(at: address, configuration, environment))
            }
            usleep(20_000)
        }
        throw Fault(description: "no running proxy has written trust files: start the proxy first, or add --serve")
    }

    /// Says what is missing although a proxy listens.
    private static func lack(
        at address: ListenAddress, _ configuration: Configuration, _ environment: [String: String]
    ) -> String {
        let parents = SharedRoots.parents(configuration, environment)
        return
            "a proxy listens at \(address), but user \(ProcessIdentity.user) finds no trust files of it. Its log names "
            + "their folder (trust=…). If another user runs it, that folder has to be in one of "
            + "\(parents.joined(separator: ", ")), which others may enter: start the proxy with XDG_RUNTIME_DIR or "
            + "RuntimeDirectory= of mode 0755"
    }

    private static func writtenNow(
        for configuration: Configuration, _ environment: [String: String]
    ) throws(Fault) -> TrustFiles? {
        if let name = configuration.trustName {
            let folders = AdminSocket.candidates(
                port: name.port, kind: name.kind, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
            for folder in [systemFolder(port: name.port, kind: name.kind)].compactMap(\.self) + folders {
                for folder in TrustFolderPath.candidates(folder) {
                    if let files = try written(in: folder) { return files }
                }
            }
            let user = configuration.proxy.listen.first(where: \.hasFixedPort).flatMap(SharedRoots.user(listeningAt:))
            for parent in SharedRoots.parents(configuration, environment) {
                for folder in TrustFolderPath.candidates(
                    "\(parent)/\(AdminSocket.name(port: name.port, kind: name.kind))")
                {
                    if let files = try written(in: folder) { return files }
                    if let roots = SharedRoots.read(in: folder, listener: user) {
                        return try SharedRoots.files(roots, name, environment)
                    }
                }
            }
        }
        return nil
    }
}

extension Configuration {
    /// Parts of the name of the folder with the trust files; `nil` if no port is known before the start.
    fileprivate var trustName: (port: UInt16, kind: String)? {
        guard case .tcp(let host, let port) = proxy.listen.first(where: \.hasFixedPort) else { return nil }
        return (port, TrustFolder.nameEnd(host.replacing(":", with: "-")))
    }
}
