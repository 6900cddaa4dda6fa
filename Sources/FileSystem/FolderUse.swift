import Glibc

/// Use of a folder, during which no other process removes it: a lock on the folder, which the kernel releases when the process
/// ends. Any number of processes use it; one that removes it is alone. flock(2). All calls block for a moment.
public final class FolderUse: Sendable {
    public let path: String
    private let descriptor: Int32

    /// Uses the folder.
    /// - Returns: `nil` for a missing folder, also when another process has just removed it, and for a symbolic link.
    public convenience init?(_ path: String) { self.init(path, LOCK_SH) }

    /// The folder alone, to remove it.
    /// - Returns: `nil` when any process uses it.
    public static func alone(_ path: String) -> FolderUse? { FolderUse(path, LOCK_EX | LOCK_NB) }

    private init?(_ path: String, _ operation: Int32) {
        guard !path.utf8.contains(0) else { return nil }
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        guard Self.lock(descriptor, operation), Self.isAt(path, descriptor) else {
            close(descriptor)
            return nil
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Ends this use.
    /// - Returns: whether it was the last one. Then this process has the folder alone, until the last reference goes.
    public func endsLast() -> Bool { Self.lock(descriptor, LOCK_EX | LOCK_NB) && Self.isAt(path, descriptor) }

    private static func lock(_ descriptor: Int32, _ operation: Int32) -> Bool {
        while flock(descriptor, operation) != 0 {
            guard errno == EINTR else { return false }
        }
        return true
    }

    /// Whether the path still leads to this folder, and not to a later one of the same name.
    private static func isAt(_ path: String, _ descriptor: Int32) -> Bool {
        var (own, found) = (stat(), stat())
        return unsafe fstat(descriptor, &own) == 0 && lstat(path, &found) == 0 && own.st_ino == found.st_ino
            && own.st_dev == found.st_dev
    }
}
