import Administration
import Configuration
import FileSystem
import Reactor

/// The roots of a proxy that another user runs, for `exec`. Only its certificates are taken from that user's folder: the
/// other trust files can name code, so `exec` writes its own. All calls block.
enum SharedRoots {
    /// The runtime folder of the package's service.
    private static let serviceFolder = "/run/heimdallr-proxy"
    private static let suffix = ".roots"

    /// Returns a runtime folder of this user that others may enter, and only this user may change; `nil` if none.
    static func openFolder(_ environment: [String: String]) -> String? {
        runtimeFolders(environment).first { folder in
            guard let status = FileStatus(ofLinkAt: folder), status.kind == .folder else { return false }
            return status.owner == ProcessIdentity.user && status.mode & 0o023 == 0o001
        }
    }

    /// Returns the folders that may hold a proxy's trust files for other users. Only root can make a folder in /run.
    static func parents(_ configuration: Configuration, _ environment: [String: String]) -> [String] {
        var known: Set<String> = []
        let socket = configuration.admin?.socket.map { AwaitedFile.folder(of: FileSystem.absolute($0)) }
        return (["/run", serviceFolder, socket].compactMap(\.self) + runtimeFolders(environment))
            .filter { known.insert($0).inserted }
    }

    /// systemd.exec(5) sets `RUNTIME_DIRECTORY`, with a colon between several.
    private static func runtimeFolders(_ environment: [String: String]) -> [String] {
        let service = (environment["RUNTIME_DIRECTORY"] ?? "").split(separator: ":").map(String.init)
        return ([environment["XDG_RUNTIME_DIR"] ?? ""] + service).filter { $0.hasPrefix("/") }
    }

    /// Returns the roots in PEM of the trust files in a folder; `nil` unless only its owner and root can change them, and
    /// the folders above.
    /// - Parameter listener: user of the proxy's listener, if known. Others can make folders in a sticky one above, so there
    ///   the folder has to be this user's.
    static func read(in folder: String, listener: UInt32? = nil) -> [UInt8]? {
        let path = "\(folder)/\(TrustFiles.addition)"
        guard let status = FileStatus(ofLinkAt: folder), status.kind == .folder, status.mode & 0o022 == 0,
            TrustFolderPath.isLasting(
                folder, for: status.owner, allowsSticky: status.owner == listener && listener != 0),
            let file = FileStatus(ofLinkAt: path), file.kind == .regular, file.owner == status.owner,
            file.mode & 0o022 == 0
        else { return nil }
        return try? FileSystem.read(path, limit: TrustFiles.settingsLimit)
    }

    /// Returns the user of the process that listens at an IPv4 address: proc_net_tcp(5). `nil` if it is unknown.
    static func user(listeningAt address: ListenAddress) -> UInt32? {
        guard case .tcp(let host, let port) = address, let numeric = NumericAddress(host), numeric.isIPv4,
            let table = try? FileSystem.read("/proc/net/tcp", limit: 16 << 20)
        else { return nil }
        // The kernel writes the address in this machine's byte order.
        let wanted = [UInt32(truncatingIfNeeded: numeric.low).bigEndian, 0].map { [$0, UInt32(port)] }
        for line in table.split(separator: 0x0A).dropFirst() {
            let fields = line.split(separator: 0x20)
            guard fields.count > 7, fields[3].elementsEqual("0A".utf8) else { continue }
            let local = fields[1].split(separator: 0x3A).compactMap {
                UInt32(String(decoding: $0, as: UTF8.self), radix: 16)
            }
            if wanted.contains(local) { return UInt32(String(decoding: fields[7], as: UTF8.self)) }
        }
        return nil
    }

    /// Writes trust files with these roots into a folder of this user. One folder serves all programs while the roots are
    /// the same. A folder with former roots is removed.
    /// - Parameter name: the parts of the name of the proxy's folder, such as 8080 and `127.0.0.1.trust`.
    static func files(
        _ roots: [UInt8], _ name: (port: UInt16, kind: String), _ environment: [String: String]
    ) throws(TrustFiles.Fault) -> TrustFiles {
        let base = name.kind.dropLast(TrustFolder.nameEnd("").count)
        let kind = "\(base).\(TrustFolderPath.part)\(suffix)"
        let fresh: String
        if let folder = TrustFiles.systemFolder(port: name.port, kind: kind) {
            fresh = folder
        } else {
            do throws(AdministrationError) {
                fresh = try AdminSocket.prepareDefault(
                    port: name.port, kind: kind, runtimeDirectory: environment["XDG_RUNTIME_DIR"]
                ).path
            } catch { throw TrustFiles.Fault(description: "no folder for them can be made: \(error)") }
        }
        let parent = AwaitedFile.folder(of: fresh)
        let start = AdminSocket.name(port: name.port, kind: "\(base).")
        var kept: String?
        for other in FileSystem.names(in: parent) where other.hasPrefix(start) && other.hasSuffix(suffix) {
            let folder = "\(parent)/\(other)"
            // Another exec is still writing a folder without roots.
            guard TrustFiles.isOwn(folder),
                let former = try? FileSystem.read("\(folder)/\(TrustFiles.addition)", limit: TrustFiles.settingsLimit)
            else { continue }
            if former == roots { kept = folder } else { TrustFiles.remove(folder) }
        }
        let files = try TrustFiles(roots: roots, folder: kept ?? fresh)
        try files.writeDefaults()
        return files
    }
}
