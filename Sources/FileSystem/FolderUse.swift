import Glibc

/// A lock on a folder, so that no process removes the folder while others use it. Users share the lock. A process takes
/// the lock exclusively to remove the folder. The kernel releases a dead process's lock. Calls block briefly. flock(2).
public final class FolderUse: Sendable {
    public let path: String
    private let descriptor: Int32

    /// Takes the shared lock. The result is `nil` for a symbolic link, and for a folder that is missing or was removed
    /// while this call waited for the lock.
    public convenience init?(_ path: String) { self.init(path, LOCK_SH) }

    /// Takes the exclusive lock, to remove the folder.
    /// - Returns: `nil` when a process uses the folder, and for a missing folder or a symbolic link.
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

    /// Makes an exclusive lock a shared one.
    public func share() { _ = Self.lock(descriptor, LOCK_SH) }

    /// Ends this use, and returns whether it was the last use. If so, this process holds the exclusive lock until the
    /// last reference to this object is released.
    public func endsLast() -> Bool { Self.lock(descriptor, LOCK_EX | LOCK_NB) && Self.isAt(path, descriptor) }

    private static func lock(_ descriptor: Int32, _ operation: Int32) -> Bool {
        while flock(descriptor, operation) != 0 {
            guard errno == EINTR else { return false }
        }
        return true
    }

    /// Whether the path still leads to this folder, and not to a later folder of the same name.
    private static func isAt(_ path: String, _ descriptor: Int32) -> Bool {
        var (own, found) = (stat(), stat())
        return unsafe fstat(descriptor, &own) == 0 && lstat(path, &found) == 0 && own.st_ino == found.st_ino
            && own.st_dev == found.st_dev
    }
}
