import FileSystem
import Glibc

/// Path of the admin socket, and checks of its folder.
public enum AdminSocket {
    /// Limit of the path in bytes. `sockaddr_un` also needs a zero byte (unix(7)).
    public static let maxPathLength = 107

    /// Returns all paths where the socket may be if `admin.socket` is not set: in `$XDG_RUNTIME_DIR`, then in folders
    /// of this user in `base`. The proxy may run without the command line's `$XDG_RUNTIME_DIR`, and then uses `base`.
    /// Folders that other users may enter are left out.
    /// - Parameters:
    ///   - kind: suffix of the name: `sock`, or the suffix of the folder for trust files.
    ///   - base: parent of the folders of all users.
    public static func candidates(
        port: UInt16, kind: String = "sock", runtimeDirectory: String?, base: String = "/tmp"
    ) -> [String] {
        var folders = runtimeFolder(runtimeDirectory).map { [$0] } ?? []
        let own = ownFolder(in: base)
        // A folder that does not exist is included, so that the error message names it.
        if ownFolderFault(in: base) == nil { folders.append(own) }
        return (folders + privateFolders(in: base)).map { $0 + "/" + name(port: port, kind: kind) }
    }

    /// Reason not to use this user's folder in `base`; `nil` if the folder is safe or does not exist.
    public static func ownFolderFault(in base: String = "/tmp") -> String? {
        let fault = folderFault(ownFolder(in: base))
        return fault == missing ? nil : fault
    }

    /// Returns a file's name in these folders.
    public static func name(port: UInt16, kind: String) -> String { "heimdallr-proxy-\(port).\(kind)" }

    private static func runtimeFolder(_ path: String?) -> String? {
        path.flatMap { $0.hasPrefix("/") && folderFault($0) == nil ? $0 : nil }
    }

    private static func ownFolder(in base: String) -> String { "\(base)/heimdallr-proxy-\(geteuid())" }

    /// Folders that a proxy of this user made because the usual folder was unsafe.
    private static func privateFolders(in base: String) -> [String] {
        let prefix = "heimdallr-proxy-\(geteuid())-"
        return FileSystem.names(in: base).filter { $0.hasPrefix(prefix) }.sorted().map { base + "/" + $0 }
            .filter { folderFault($0) == nil }
    }

    /// Chooses the folder of the default path: `runtimeDirectory`, or else this user's folder in `base`, which is made.
    /// If that folder is unsafe, a private folder with a random name replaces it. `candidates` finds a private folder
    /// by the user ID in its name.
    /// - Returns: the path, and the reason why a private folder is used; `nil` for another folder.
    public static func prepareDefault(
        port: UInt16, kind: String = "sock", runtimeDirectory: String?, base: String = "/tmp"
    ) throws(AdministrationError) -> (path: String, passedOver: String?) {
        let end = "/" + name(port: port, kind: kind)
        if let folder = runtimeFolder(runtimeDirectory) { return (folder + end, nil) }
        let own = ownFolder(in: base)
        FileSystem.makeFolder(own, mode: 0o700)
        guard let fault = folderFault(own) else { return (own + end, nil) }
        let reason = "\(own) can't be used: \(fault)"
        if let folder = privateFolders(in: base).first { return (folder + end, reason) }
        let folder = own + "-" + String(UInt64.random(in: .min ... .max), radix: 36)
        FileSystem.makeFolder(folder, mode: 0o700)
        if let fault = folderFault(folder) {
            throw .socket(
                path: own + end,
                reason:
                    "\(reason), and neither can \(folder): \(fault). Make \(base) writable, if it is mounted read-only")
        }
        return (folder + end, reason)
    }

    /// Reason not to send a password to this socket: another user could replace the socket's file. `nil` if only this
    /// user or root may write to its folder. Symbolic links are followed.
    public static func sharedFolderFault(folderOf path: String) -> String? {
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard let real = FileStatus(of: folder) else { return "its folder \(folder) does not exist or can't be read" }
        guard real.owner == geteuid() || real.owner == 0 else { return "its folder \(folder) belongs to another user" }
        guard real.mode & 0o022 == 0 else { return "others may write into its folder \(folder)" }
        return nil
    }

    static var user: UInt32 { geteuid() }

    /// This user's folder in /tmp. Check `ownFolderFault` before its use, because other users can make folders there.
    public static var ownFolder: String { ownFolder(in: "/tmp") }

    private static let missing = "it does not exist"

    /// Reason not to trust this folder; `nil` if this user owns it and no other user may enter it.
    public static func folderFault(_ path: String) -> String? {
        guard let status = FileStatus(ofLinkAt: path) else { return missing }
        guard status.kind == .folder else { return "it is not a folder" }
        guard status.owner == geteuid() else { return "it belongs to another user" }
        guard status.mode & 0o077 == 0 else { return "others may enter it" }
        return nil
    }
}

/// Reason why the administration can't start.
public enum AdministrationError: Error, CustomStringConvertible {
    case listen(address: String, reason: String)
    case socket(path: String, reason: String)

    public var description: String {
        switch self {
        case .listen(let address, let reason): "can't listen on \(address) (admin.listen): \(reason)"
        case .socket(let path, let reason): "can't use the admin socket \(path): \(reason); set admin.socket"
        }
    }
}
