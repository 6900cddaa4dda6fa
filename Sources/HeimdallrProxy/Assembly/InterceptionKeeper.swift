import Administration
import Configuration
import Cryptography
import FileSystem
import Glibc
import Logging
import Proxy
import Synchronization

/// Keeps the certificates of intercepted hosts, and the files by which programs trust them.
final class InterceptionKeeper: Sendable {
    private struct State {
        var current: Interception?
        var files: TrustFiles?
    }

    /// Programs trust it only until the process ends, so that it may outlive every process.
    private static let lifetime: Int64 = 397 * 86_400

    private let isForOneProgram: Bool
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter isForOneProgram: no other process looks for the files.
    init(isForOneProgram: Bool, logger: Logger) {
        self.isForOneProgram = isForOneProgram
        self.logger = logger
    }

    /// The certificates for a configuration: the current ones, if they are for the same hosts.
    /// - Returns: `nil` if no TLS is opened.
    func prepare(_ configuration: Configuration) async throws -> Interception? {
        let hosts = configuration.interceptedHosts
        guard !hosts.isEmpty else { return nil }
        if let current = state.withLock({ $0.current }), current.certificates.fits(hosts) { return current }
        do {
            return Interception(
                try await BlockingWork.run {
                    Result { () throws(CryptographyError) in
                        try CertificateAuthority.issue(for: hosts, lifetime: Self.lifetime)
                    }
                }.get())
        } catch {
            throw ConfigurationError(problems: [.init(file: "intercept", message: "\(error)")])
        }
    }

    /// Begins to use these, and writes the files. Without the files requests are served, but `exec` has nothing to name.
    func use(_ interception: Interception?, _ configuration: Configuration) async {
        let former = state.withLock { state in
            defer { state.current = interception }
            return state.current
        }
        guard interception !== former else { return }
        if former != nil, interception != nil {
            logger.warning(
                "there is a new authority for intercepted TLS: its hosts or its end have changed",
                metadata: ["what_to_do": "start the programs again, which trust the former one"])
        }
        guard let interception else { return await end() }
        let hosts = interception.certificates.leaves.count
        do {
            let path = try folder(configuration)
            let files = try await BlockingWork.run {
                Result {
                    let files = try TrustFiles(roots: Array(interception.certificates.rootsPEM.utf8), folder: path)
                    try files.writeDefaults()
                    return files
                }
            }.get()
            state.withLock { $0.files = files }
            logger.info(
                "TLS of programs is opened", metadata: ["hosts": .stringConvertible(hosts), "trust": "\(path)"])
        } catch {
            logger.error(
                "the files by which programs trust intercepted TLS can't be written", metadata: ["reason": "\(error)"])
        }
    }

    var files: TrustFiles? { state.withLock { $0.files } }

    /// Named after the port of `proxy.listen`. Where no other process looks for it, named after this process, too.
    private func folder(_ configuration: Configuration) throws -> String {
        let port = configuration.trustPort
        let kind = isForOneProgram || port == 0 ? "\(getpid()).\(TrustFiles.kind)" : TrustFiles.kind
        if let folder = TrustFiles.systemFolder(port: port, kind: kind) { return folder }
        let runtime = ProcessEnvironment.value(of: "XDG_RUNTIME_DIR")
        return try AdminSocket.prepareDefault(port: port, kind: kind, runtimeDirectory: runtime).path
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
    fileprivate static let kind = "trust"

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
        let port = configuration.trustPort
        let folders = AdminSocket.candidates(
            port: port, kind: Self.kind, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
        for folder in [systemFolder(port: port, kind: Self.kind)].compactMap({ $0 }) + folders {
            if let roots = Self.roots(in: folder) { return try TrustFiles(roots: roots, folder: folder) }
        }
        throw Fault(description: "there is no running proxy that has some: start it first, or add --serve")
    }
}

extension Configuration {
    /// The port after which the folder of trust files is named.
    var trustPort: UInt16 {
        for case .tcp(_, let port) in proxy.listen where port != 0 { return port }
        return 0
    }
}
