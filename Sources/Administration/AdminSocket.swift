import FoundationEssentials
import Glibc

/// Where the admin socket is, and the state of its file.
public enum AdminSocket {
    /// A path has to fit into `sockaddr_un` with its zero byte (unix(7)).
    public static let maxPathLength = 107

    /// Where a proxy listens that is not told a path: in `$XDG_RUNTIME_DIR`, else in a folder of the user's own.
    /// - Parameter port: of the admin listener, as configured.
    public static func defaultPath(port: UInt16, runtimeDirectory: String?) -> String {
        candidates(port: port, runtimeDirectory: runtimeDirectory)[0]
    }

    /// Where to look for it: the one who asks may have a runtime folder where the proxy has none.
    public static func candidates(port: UInt16, runtimeDirectory: String?) -> [String] {
        let name = "heimdallr-proxy-\(port).sock"
        var folders = [ownFolder]
        if let runtimeDirectory, runtimeDirectory.hasPrefix("/"), folderFault(runtimeDirectory) == nil {
            folders.insert(runtimeDirectory, at: 0)
        }
        return folders.map { $0 + "/" + name }
    }

    /// The user that this process runs as.
    static var user: UInt32 { geteuid() }

    /// In /tmp, where anybody may have been before us: never used unless it is ours alone.
    public static var ownFolder: String { "/tmp/heimdallr-proxy-\(geteuid())" }

    /// What keeps a folder from being trusted with a socket; `nil` when it is ours and nobody else may enter it.
    public static func folderFault(_ path: String) -> String? {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            return "it does not exist"
        }
        guard attributes[.type] as? FileAttributeType == .typeDirectory else { return "it is not a folder" }
        guard owner(attributes) == geteuid() else { return "it belongs to another user" }
        guard let mode = mode(attributes), mode & 0o077 == 0 else { return "others may enter it" }
        return nil
    }

    /// Makes the own folder if need be.
    static func prepareFolder(of path: String) throws(AdministrationError) {
        guard path.hasPrefix(ownFolder + "/") else { return }
        try? FileManager.default.createDirectory(
            atPath: ownFolder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        if let fault = folderFault(ownFolder) {
            throw .socket(path: path, reason: "\(ownFolder) can't be used: \(fault)")
        }
    }

    enum Presence: Equatable { case nothing, socket, somethingElse }

    static func presence(_ path: String) -> Presence {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return .nothing }
        return attributes[.type] as? FileAttributeType == .typeSocket ? .socket : .somethingElse
    }

    static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

    /// Only its owner may connect.
    static func restrict(_ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    /// Tells a file from one that has taken its place.
    static func identity(_ path: String) -> UInt64? {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
        return number(attributes[.systemFileNumber])
    }

    private static func owner(_ attributes: [FileAttributeKey: Any]) -> UInt32? {
        number(attributes[.ownerAccountID]).flatMap { UInt32(exactly: $0) }
    }

    private static func mode(_ attributes: [FileAttributeKey: Any]) -> UInt32? {
        number(attributes[.posixPermissions]).flatMap { UInt32(exactly: $0) }
    }

    /// A Swift integer, or an NSNumber once somebody has linked all of Foundation; both print as digits.
    private static func number(_ value: Any?) -> UInt64? { value.flatMap { UInt64("\($0)") } }
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
