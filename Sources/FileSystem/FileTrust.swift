import Glibc

/// Checks that only this user has access to an open file.
enum FileTrust {
    /// - Throws: `Fault.untrusted` with advice. fstat(2).
    static func check(_ descriptor: Int32, path: String, isDirectory: Bool) throws(FileSystem.Fault) {
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0 else {
            throw .system(operation: "look at", path: path, errno: errno)
        }
        let kind = information.st_mode & S_IFMT
        guard kind == (isDirectory ? S_IFDIR : S_IFREG) else {
            throw .untrusted(path: path, reason: isDirectory ? "is not a directory" : "is not a regular file")
        }
        guard information.st_uid == geteuid() else {
            throw .untrusted(
                path: path,
                reason: "belongs to user \(information.st_uid), and this process runs as \(geteuid()): "
                    + "`chown` it, or run as that user")
        }
        // With an access control list, the group's bits are the mask of the list. acl(5).
        guard information.st_mode & 0o077 == 0 else {
            let mode = String(information.st_mode & 0o7777, radix: 8)
            // /tmp and similar folders must stay open to everyone.
            guard !isDirectory || information.st_mode & S_ISVTX == 0 else {
                throw .untrusted(
                    path: path,
                    reason: "is open to everybody (mode \(mode)): name a new folder in it, such as \(path)/NAME")
            }
            throw .untrusted(
                path: path, reason: "is open to other users (mode \(mode)): `chmod \(isDirectory ? 700 : 600)` it")
        }
    }
}
