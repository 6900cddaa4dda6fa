import FileSystem
import Glibc

/// Where the admin socket is, and the state of its file.
public enum AdminSocket {
    /// A path has to fit into `sockaddr_un` with its zero byte (unix(7)).
    public static let maxPathLength = 107

    /// Where a proxy listens that is not told a path, unless somebody has been there before: in `$XDG_RUNTIME_DIR`, else
    /// in a folder of the user's own.
    /// - Parameter port: of the admin listener, as configured.
    public static func defaultPath(port: UInt16, runtimeDirectory: String?) -> String {
        (runtimeFolder(runtimeDirectory) ?? ownFolder) + "/" + name(port)
    }

    /// Where to look for it: the one who asks may have a runtime folder where the proxy has none. Only in folders that
    /// are ours alone.
    /// - Parameter base: where the folders of all users are.
    public static func candidates(port: UInt16, runtimeDirectory: String?, base: String = "/tmp") -> [String] {
        var folders = runtimeFolder(runtimeDirectory).map { [$0] } ?? []
        let own = ownFolder(in: base)
        // One that does not exist yet is named too, so that the message says where was looked.
        if ownFolderFault(in: base) == nil { folders.append(own) }
        return (folders + privateFolders(in: base)).map { $0 + "/" + name(port) }
    }

    /// Why the usual folder in `base` is not used; `nil` when it is ours, or not there.
    public static func ownFolderFault(in base: String = "/tmp") -> String? {
        let fault = folderFault(ownFolder(in: base))
        return fault == missing ? nil : fault
    }

    private static func name(_ port: UInt16) -> String { "heimdallr-proxy-\(port).sock" }

    private static func runtimeFolder(_ path: String?) -> String? {
        guard let path, path.hasPrefix("/"), folderFault(path) == nil else { return nil }
        return path
    }

    private static func ownFolder(in base: String) -> String { "\(base)/heimdallr-proxy-\(geteuid())" }

    /// Where the usual folder can't be used: those that a proxy of ours has made beside it.
    private static func privateFolders(in base: String) -> [String] {
        let prefix = "heimdallr-proxy-\(geteuid())-"
        return FileSystem.names(in: base).filter { $0.hasPrefix(prefix) }.sorted().map { base + "/" + $0 }
            .filter { folderFault($0) == nil }
    }

    /// Makes the folder of the default path. Where somebody else's stands in the way it is a private one beside it, with
    /// a name that nobody can guess, which `candidates` finds by its owner.
    /// - Returns: the path, and what was wrong with the usual folder.
    static func prepareDefault(
        port: UInt16, runtimeDirectory: String?, base: String = "/tmp"
    ) throws(AdministrationError) -> (path: String, passedOver: String?) {
        if let folder = runtimeFolder(runtimeDirectory) { return (folder + "/" + name(port), nil) }
        let own = ownFolder(in: base)
        FileSystem.makeFolder(own, mode: 0o700)
        guard let fault = folderFault(own) else { return (own + "/" + name(port), nil) }
        let reason = "\(own) can't be used: \(fault)"
        if let folder = privateFolders(in: base).first { return (folder + "/" + name(port), reason) }
        let folder = own + "-" + String(UInt64.random(in: .min ... .max), radix: 36)
        FileSystem.makeFolder(folder, mode: 0o700)
        if let fault = folderFault(folder) {
            throw .socket(path: own + "/" + name(port), reason: "\(reason), and neither can \(folder): \(fault)")
        }
        return (folder + "/" + name(port), reason)
    }

    /// Why a socket in this folder is not to be trusted with a password: somebody else could put one in its place.
    /// Symbolic links are followed: what counts is where the socket really is. `nil` when only its owner, who is this
    /// user or root, may write there.
    public static func strangersFault(folderOf path: String) -> String? {
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard let real = FileStatus(of: folder) else { return "its folder \(folder) can't be looked at" }
        guard real.owner == geteuid() || real.owner == 0 else { return "its folder \(folder) belongs to another user" }
        guard real.mode & 0o022 == 0 else { return "others may write into its folder \(folder)" }
        return nil
    }

    /// The user that this process runs as.
    static var user: UInt32 { geteuid() }

    /// In /tmp, where anybody may have been before us: never used unless it is ours alone.
    public static var ownFolder: String { ownFolder(in: "/tmp") }

    private static let missing = "it does not exist"

    /// What keeps a folder from being trusted with a socket; `nil` when it is ours and nobody else may enter it.
    public static func folderFault(_ path: String) -> String? {
        guard let status = FileStatus(ofLinkAt: path) else { return missing }
        guard status.kind == .folder else { return "it is not a folder" }
        guard status.owner == geteuid() else { return "it belongs to another user" }
        guard status.mode & 0o077 == 0 else { return "others may enter it" }
        return nil
    }
}

/// Why there is no administration.
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
