import Glibc

/// An open directory and its files, to which only this process's user has access. Each file is opened relative to the
/// directory's descriptor, so the directory can't be exchanged between two calls. Blocks on the disk: never call it on
/// an event loop. Safe on any thread.
public final class PrivateDirectory: Sendable {
    public let path: String
    /// Opened in `init`, closed in `deinit`.
    private let descriptor: Int32

    /// Opens the directory, or creates it with mode 0700. Its parent must exist.
    ///
    /// - Throws: `Fault.untrusted` for a symbolic link, a file, or a directory of another user or open to
    ///   others; `.system` when a system call fails.
    public init(path given: String) throws(FileSystem.Fault) {
        path = try Self.trimmed(given)
        let isNew = unsafe mkdir(path, 0o700) == 0
        if !isNew, errno != EEXIST {
            let number = errno
            // mkdir(2) may fail with another error, although the directory exists.
            guard unsafe access(path, F_OK) == 0 else {
                throw .system(operation: "make the directory", path: path, errno: number)
            }
        }
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.refusal(of: path, errno) }
        self.descriptor = descriptor
        try FileTrust.check(descriptor, path: path, isDirectory: true)
        if isNew { try Self.makeDurable(path) }
    }

    deinit { close(descriptor) }

    /// Throws the error that `init` would throw, but creates no directory.
    public static func check(path given: String) throws(FileSystem.Fault) {
        let path = try trimmed(given)
        var information = stat()
        guard unsafe lstat(path, &information) != 0, errno == ENOENT else {
            _ = try PrivateDirectory(path: path)
            return
        }
        guard unsafe access(parent(of: path), W_OK | X_OK) == 0 else {
            throw .system(operation: "make the directory", path: path, errno: errno)
        }
    }

    /// Removes slashes at the end of the path: with a slash, open(2) would follow a symbolic link.
    /// - Throws: `Fault.untrusted` for an empty path, and for a path with a NUL byte.
    private static func trimmed(_ given: String) throws(FileSystem.Fault) -> String {
        var path = given
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw .untrusted(path: "the directory", reason: "needs a name without NUL bytes")
        }
        return path
    }

    private static func parent(of path: String) -> String {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }

    private static func refusal(of path: String, _ number: Int32) -> FileSystem.Fault {
        // With O_NOFOLLOW and O_DIRECTORY, open(2) also fails with ENOTDIR for a symbolic link.
        guard number == ELOOP || number == ENOTDIR else {
            return .system(operation: "open the directory", path: path, errno: number)
        }
        var information = stat()
        let isLink = unsafe lstat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFLNK
        return .untrusted(
            path: path,
            reason: isLink ? "is a symbolic link: name the directory itself" : "is not a directory")
    }

    /// Flushes the parent of a new directory: a power cut before the flush could lose the directory with its files.
    private static func makeDurable(_ path: String) throws(FileSystem.Fault) {
        let parent = parent(of: path)
        let descriptor = unsafe open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // A parent that is searchable but not readable can't be flushed.
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else {
            throw .system(operation: "write the directory", path: parent, errno: errno)
        }
    }

    // MARK: Files

    /// Returns the whole content of a file; `nil` for a missing file.
    /// - Throws: `Fault`: `.untrusted` if other users could have read or written the file.
    public func read(_ name: String, limit: Int) throws(FileSystem.Fault) -> [UInt8]? {
        let path = self.path(of: name)
        guard let descriptor = try openFile(name, O_RDONLY | O_NONBLOCK) else { return nil }
        defer { close(descriptor) }
        try FileTrust.check(descriptor, path: path, isDirectory: false)
        return try FileBytes.read(descriptor, path: path, limit: limit)
    }

    /// Replaces a file atomically, with mode 0600: a reader gets the old or the new content, also after a kill or a
    /// power cut. After this call returns, the new content survives both.
    ///
    /// The caller holds a lock, so that there is one call at a time for each name. A kill may leave a half-written
    /// `name.new`, which the next call removes.
    /// - Throws: `Fault`. The old file is then unchanged. Exception: if only the last flush failed, the new
    ///   file has replaced the old file, but may not survive a power cut.
    public func replace(_ name: String, with bytes: [UInt8]) throws(FileSystem.Fault) {
        let draft = name + ".new"
        let draftPath = path(of: draft)
        try unlink(draft)
        let file = unsafe openat(descriptor, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .system(operation: "create", path: draftPath, errno: errno) }
        do throws(FileSystem.Fault) {
            try FileBytes.write(bytes, closing: file, path: draftPath)
            guard unsafe renameat(descriptor, draft, descriptor, name) == 0 else {
                throw .system(operation: "replace", path: path(of: name), errno: errno)
            }
        } catch {
            // Frees the space of the draft.
            _ = unsafe unlinkat(descriptor, draft, 0)
            throw error
        }
        try flush()
    }

    /// Writes over the content of an existing file, for a full disk and for a directory that can't be changed. Only the
    /// space that the file has already is used. A power cut may leave a mixture of both contents.
    /// - Throws: `Fault`. The old content is unchanged if it was too short.
    public func overwrite(_ name: String, with bytes: [UInt8]) throws(FileSystem.Fault) {
        let path = self.path(of: name)
        guard let file = try openFile(name, O_WRONLY | O_NONBLOCK) else {
            throw .system(operation: "open", path: path, errno: ENOENT)
        }
        var status = stat()
        guard unsafe fstat(file, &status) == 0, bytes.count <= Int(status.st_blocks) * 512 else {
            close(file)
            throw .system(operation: "write over", path: path, errno: ENOSPC)
        }
        do throws(FileSystem.Fault) {
            try FileTrust.check(file, path: path, isDirectory: false)
        } catch {
            close(file)
            throw error
        }
        try FileBytes.write(bytes, closing: file, path: path, isWhole: true)
    }

    /// Removes a file durably. No-op for a missing file.
    public func remove(_ name: String) throws(FileSystem.Fault) {
        if try unlink(name) { try flush() }
    }

    /// - Returns: `false` for a missing file.
    @discardableResult
    private func unlink(_ name: String) throws(FileSystem.Fault) -> Bool {
        if unsafe unlinkat(descriptor, name, 0) == 0 { return true }
        guard errno == ENOENT else { throw .system(operation: "remove", path: path(of: name), errno: errno) }
        return false
    }

    /// Locks a file; `nil` if another process, or another owner in this process, holds the lock. Creates a missing
    /// file, and never removes the file, because a lock on a removed file has no effect.
    /// - Parameter isShared: takes a lock that any number of owners may share (LOCK_SH), instead of an exclusive lock.
    public func tryLock(_ name: String, isShared: Bool = false) throws(FileSystem.Fault) -> FileLock? {
        let path = self.path(of: name)
        guard let descriptor = try openFile(name, O_RDWR | O_CREAT | O_NONBLOCK) else {
            throw .system(operation: "open", path: path, errno: ENOENT)
        }
        let lock = FileLock(descriptor)
        try FileTrust.check(descriptor, path: path, isDirectory: false)
        return try lock.take(isShared ? LOCK_SH : LOCK_EX, path: path) ? lock : nil
    }

    private func flush() throws(FileSystem.Fault) {
        guard fsync(descriptor) == 0 else { throw .system(operation: "write the directory", path: path, errno: errno) }
    }

    private func path(of name: String) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }

    /// openat(2).
    /// - Returns: `nil` for a missing file.
    private func openFile(_ name: String, _ flags: Int32) throws(FileSystem.Fault) -> Int32? {
        let file = unsafe openat(descriptor, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0o600)
        guard file < 0 else { return file }
        switch errno {
        case ENOENT where flags & O_CREAT == 0: return nil
        case ELOOP:
            throw .untrusted(path: path(of: name), reason: "is a symbolic link, which is not followed: remove it")
        case let number: throw .system(operation: "open", path: path(of: name), errno: number)
        }
    }
}

/// A file lock, held until the last reference is released or the process ends. flock(2).
public final class FileLock: Sendable {
    private let descriptor: Int32

    /// Takes ownership of the descriptor.
    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// - Returns: `false` when another owner has the lock.
    fileprivate func take(_ operation: Int32, path: String) throws(FileSystem.Fault) -> Bool {
        while flock(descriptor, operation | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return false }
            guard errno == EINTR else { throw .system(operation: "lock", path: path, errno: errno) }
        }
        return true
    }
}
