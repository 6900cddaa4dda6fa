import Glibc

/// A file for programs of other users, in a folder that only this user and root can change. A reader gets a whole content,
/// or no file. Blocks on the disk.
public struct PublishedFile: Sendable {
    public let path: String
    private let folder: String
    private let name: String

    /// - Parameter path: absolute path.
    public init(_ path: String) {
        self.path = path
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        folder = slash == path.startIndex ? "/" : String(path[..<slash])
        name = String(path[slash...].dropFirst())
    }

    /// Checks the folders and the file, and changes nothing.
    /// - Throws: `Fault.untrusted` if another user could change or redirect the file, or something else has its name.
    public func check() throws(FileSystem.Fault) {
        try checkFolders()
        guard let status = FileStatus(ofLinkAt: path) else { return }
        guard status.kind == .regular else {
            throw .untrusted(
                path: path, reason: "is a link, a folder or another special file: remove it, or write another path")
        }
    }

    private func checkFolders() throws(FileSystem.Fault) {
        guard !name.isEmpty, path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw .untrusted(path: path, reason: "is not the absolute path of a file")
        }
        var end = folder.startIndex
        while end < folder.endIndex {
            end = folder[folder.index(after: end)...].firstIndex(of: "/") ?? folder.endIndex
            try Self.check(String(folder[..<end]), isLast: end == folder.endIndex)
        }
        // Above all of them.
        try Self.check("/", isLast: folder == "/")
    }

    /// Checks a folder in the path. A link is root's own arrangement, such as /var/run, or refused.
    private static func check(_ path: String, isLast: Bool) throws(FileSystem.Fault) {
        guard var status = FileStatus(ofLinkAt: path) else {
            throw .system(operation: "use the folder", path: path, errno: ENOENT)
        }
        if status.kind == .link {
            guard status.owner == 0, !isLast, let target = FileStatus(of: path) else {
                throw .untrusted(path: path, reason: "is a link: name the folder itself")
            }
            status = target
        }
        guard status.kind == .folder else { throw .untrusted(path: path, reason: "is not a folder") }
        guard status.owner == 0 || status.owner == geteuid() else {
            throw .untrusted(
                path: path,
                reason:
                    "belongs to user \(status.owner), who could replace the file: name a folder of root or of user \(geteuid())"
            )
        }
        let isSticky = status.mode & 0o1000 != 0 && !isLast
        guard status.mode & 0o022 == 0 || isSticky else {
            throw .untrusted(
                path: path,
                reason:
                    "can be written by others (mode \(String(status.mode, radix: 8))): `chmod 755` it, or name another folder"
            )
        }
    }

    /// Replaces the content.
    /// - Parameters:
    ///   - mode: permissions of the file, regardless of the umask.
    ///   - group: group of the file; `nil` for this process's.
    public func replace(with bytes: [UInt8], mode: UInt32, group: UInt32?) throws(FileSystem.Fault) {
        try check()
        let directory = try openFolder()
        defer { close(directory) }
        let draft = ".\(name).\(UInt64.random(in: 0 ... .max))"
        let file = unsafe openat(directory, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .system(operation: "write", path: path, errno: errno) }
        do throws(FileSystem.Fault) {
            // Before the mode, so that no other group can read it for a moment.
            if let group, fchown(file, uid_t.max, group) != 0 {
                let number = errno
                close(file)
                throw .system(operation: "set the group of", path: path, errno: number)
            }
            try FileBytes.write(bytes, closing: file, path: path, mode: mode)
            guard unsafe renameat(directory, draft, directory, name) == 0 else {
                throw .system(operation: "write", path: path, errno: errno)
            }
        } catch {
            _ = unsafe unlinkat(directory, draft, 0)
            throw error
        }
        _ = fsync(directory)
    }

    /// Removes the file, and drafts that a killed process has left. No-op for a missing file, and for one that is not regular.
    public func remove() throws(FileSystem.Fault) {
        guard FileStatus(of: folder) != nil else { return }
        try checkFolders()
        let directory = try openFolder()
        defer { close(directory) }
        for other in FileSystem.names(in: folder)
        where other.hasPrefix(".\(name).") && UInt64(other.dropFirst(name.count + 2)) != nil {
            _ = unsafe unlinkat(directory, other, 0)
        }
        guard FileStatus(ofLinkAt: path)?.kind == .regular else { return }
        guard unsafe unlinkat(directory, name, 0) == 0 || errno == ENOENT else {
            throw .system(operation: "remove", path: path, errno: errno)
        }
    }

    private func openFolder() throws(FileSystem.Fault) -> Int32 {
        let directory = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard directory >= 0 else { throw .system(operation: "open the folder of", path: path, errno: errno) }
        return directory
    }
}

extension FileSystem {
    /// Returns the ID of a group: getgrnam_r(3). `nil` if there is none. May ask a name service.
    public static func groupID(of name: String) -> UInt32? {
        if let number = UInt32(name) { return number }
        guard !name.utf8.contains(0) else { return nil }
        var buffer = [CChar](repeating: 0, count: 16 * 1024)
        return unsafe buffer.withUnsafeMutableBufferPointer { buffer -> UInt32? in
            var entry = unsafe group()
            var found: UnsafeMutablePointer<group>?
            guard let start = buffer.baseAddress, unsafe getgrnam_r(name, &entry, start, buffer.count, &found) == 0,
                unsafe found != nil
            else { return nil }
            return unsafe entry.gr_gid
        }
    }
}
