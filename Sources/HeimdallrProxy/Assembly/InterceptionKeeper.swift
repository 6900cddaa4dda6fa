import Administration
import Configuration
import Cryptography
import FileSystem
import Glibc
import Heimdallr
import Logging
import Proxy
import Synchronization

/// Keeps the certificates of intercepted hosts, and the files by which programs trust them.
final class InterceptionKeeper: Sendable {
    private struct State {
        var current: Interception?
        var files: TrustFiles?
    }

    /// 397 days, in seconds: a process that runs for longer is an exception, and a reload renews them before.
    private static let lifetime: Int64 = 397 * 86_400

    private let isForOneProgram: Bool
    private let secrets: SecretCache
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter isForOneProgram: no other process looks for the files.
    init(isForOneProgram: Bool = false, secrets: SecretCache, logger: Logger) {
        self.isForOneProgram = isForOneProgram
        self.secrets = secrets
        self.logger = logger
    }

    /// The certificates for a configuration: the current ones, if they are for the same hosts.
    /// - Returns: `nil` if no TLS is opened.
    func prepare(_ configuration: Configuration) async throws -> Interception? {
        let hosts = configuration.interceptedHosts
        guard !hosts.isEmpty else { return nil }
        if let current = state.withLock({ $0.current }), current.certificates.fits(hosts) { return current }
        do {
            guard let settings = configuration.interception else {
                return try await Self.issue(hosts, keeping: nil)
            }
            let text = try await StoreAssembly(configuration, secrets).secret(settings.key, "interception.key")
            return try await Self.issue(hosts, keeping: (settings.directory, TokenStoreKey(text).sealing))
        } catch {
            var problem = configuration.keyUses.opened["interception"] ?? .init(file: "interception", message: "")
            problem.message = "interception: \(error)"
            throw ConfigurationError(problems: [problem])
        }
    }

    private static let (stored, storedLimit, storedRoots) = ("certificates", 64 << 20, "roots.pem")

    /// Reads the stored certificates if they are for these hosts; else makes new ones.
    /// - Parameter store: the folder that keeps them, and the key that seals them.
    private static func issue(_ hosts: Set<String>, keeping store: (path: String, key: SealingKey)?) async throws
        -> Interception
    {
        try await BlockingWork.run {
            Result { () throws(CryptographyError) -> Interception in
                guard let store else {
                    return Interception(try CertificateAuthority.issue(for: hosts, lifetime: lifetime))
                }
                let folder = try PrivateDirectory(path: store.path)
                if let bytes = try folder.read(stored, limit: storedLimit) {
                    let former = try IssuedCertificates(sealed: bytes, key: store.key)
                    if former.fits(hosts) { return Interception(former) }
                }
                let made = try CertificateAuthority.issue(for: hosts, lifetime: lifetime)
                try folder.replace(stored, with: try made.seal(key: store.key))
                try folder.replace(storedRoots, with: Array(made.rootsPEM.utf8))
                return Interception(made)
            }
        }.get()
    }

    /// Begins to use these, and writes the files. Without the files requests are served, but `exec` has nothing to name.
    func use(_ interception: Interception?, _ configuration: Configuration) async {
        let (former, files) = state.withLock { state in
            defer { state.current = interception }
            return (state.current, state.files)
        }
        if let former, let interception, former !== interception {
            logger.warning(
                "there is a new authority for intercepted TLS: its hosts or its end have changed",
                metadata: ["what_to_do": "start the programs again, which trust the former one"])
        }
        guard let interception else { return await end() }
        do {
            let path = try folder(configuration)
            guard former !== interception || path != files?.folder else { return }
            let written = try await BlockingWork.run {
                Result {
                    let files = try TrustFiles(roots: Array(interception.certificates.rootsPEM.utf8), folder: path)
                    try files.writeDefaults()
                    return files
                }
            }.get()
            if files?.folder != path { await end() }
            state.withLock { $0.files = written }
            logger.info(
                "TLS of programs is opened",
                metadata: ["hosts": .stringConvertible(interception.certificates.leaves.count), "trust": "\(path)"])
        } catch {
            logger.error(
                "the files by which programs trust intercepted TLS can't be written", metadata: ["reason": "\(error)"])
        }
    }

    var files: TrustFiles? { state.withLock { $0.files } }

    /// Named after the first address of `proxy.listen`, or after this process if nobody could know that.
    private func folder(_ configuration: Configuration) throws -> String {
        let known = isForOneProgram ? nil : configuration.trustName
        let (port, kind) = known ?? (0, "\(getpid()).trust")
        if let folder = TrustFiles.systemFolder(port: port, kind: kind) { return folder }
        return try AdminSocket.prepareDefault(
            port: port, kind: kind, runtimeDirectory: ProcessEnvironment.value(of: "XDG_RUNTIME_DIR")
        ).path
    }

    func end() async {
        let files = state.withLock { state in
            defer { state.files = nil }
            return state.files
        }
        if let files { await BlockingWork.run { files.remove() } }
    }
}

extension TrustFiles {
    /// The folder of root's files. Other users can't enter the runtime folder, but apt reads the files as its user `_apt`.
    /// - Returns: `nil` for other users, and where /run can't be written or is not root's alone.
    fileprivate static func systemFolder(port: UInt16, kind: String) -> String? {
        let parent = "/run"
        guard ProcessIdentity.user == 0, let status = FileStatus(of: parent), status.owner == 0,
            status.mode & 0o022 == 0, FileSystem.isWritable(parent)
        else { return nil }
        return "\(parent)/heimdallr-proxy-\(port).\(kind)"
    }

    /// Those that a running proxy with this configuration has written.
    static func written(
        for configuration: Configuration, _ environment: [String: String]
    ) throws(Fault) -> TrustFiles {
        if let name = configuration.trustName {
            let folders = AdminSocket.candidates(
                port: name.port, kind: name.kind, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
            for folder in [systemFolder(port: name.port, kind: name.kind)].compactMap({ $0 }) + folders {
                if let files = try written(in: folder) { return files }
            }
        }
        throw Fault(description: "there is no running proxy that has some: start it first, or add --serve")
    }
}

extension Configuration {
    /// Parts of the name of the folder with the trust files; `nil` without an address that is known before the start.
    fileprivate var trustName: (port: UInt16, kind: String)? {
        for case .tcp(let host, let port) in proxy.listen where port != 0 {
            return (port, "\(host.replacing(":", with: "-")).trust")
        }
        return nil
    }
}
