import CLinux
import Glibc
import Synchronization

struct UnixSocketFile: Sendable {
    let path: String
    private let device: dev_t
    private let inode: ino_t

    /// Serializes `removeAtOnce` among the loops of this process.
    private static let turn = Mutex(())

    /// Removes the file, unless another process has replaced it. Never waits for another process.
    /// - Returns: `false` while another process holds the folder's lock.
    func removeAtOnce() -> Bool {
        Self.turn.withLock { _ in
            let lock = FolderLock(of: path, patiently: false)
            guard !lock.isHeldElsewhere else { return false }
            unlinkOwn()
            return true
        }
    }

    /// Removes the file on another thread, which waits at most a second for the folder's lock. The socket refuses
    /// connections at once, but is closed only after the removal: while it is open, no other file can get its inode.
    /// - Returns: `false` if no thread could be started. The file then stays, and the next listener replaces it.
    func removeLater(closing descriptor: Int32) -> Bool {
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        let work: @Sendable () -> Void = {
            let lock = FolderLock(of: path, patiently: true)
            unlinkOwn()
            _ = lock
            close(descriptor)
        }
        return (try? startThread("socket file", work)) != nil
    }

    /// Removes the file if it is still ours. The caller holds the folder's lock.
    func unlinkOwn() {
        guard let now = Self.status(path), now.st_dev == device, now.st_ino == inode else { return }
        _ = unsafe unlink(path)
    }

    /// Binds `descriptor` to `path`. Replaces a socket file without a listener.
    /// - Parameter mode: permissions of the file. Connecting needs write permission (unix(7)). The file never has wider
    ///   permissions.
    /// - Throws: `SystemError`: EADDRINUSE for a socket with a listener, EEXIST for a file of another kind.
    static func bind(_ descriptor: Int32, _ address: SocketAddress, path: String, mode: UInt16) throws(SystemError) {
        // bind(2) gives the file the socket's mode, reduced by the umask.
        try check("fchmod", fchmod(descriptor, mode_t(mode)))
        try makeWay(for: path)
        try check("bind", try unsafe address.withKernelForm { unsafe Glibc.bind(descriptor, $0, $1) })
        try check("chmod", unsafe chmod(path, mode_t(mode)))
    }

    /// Identifies the file at `path` now.
    init?(at path: String) {
        guard let status = Self.status(path) else { return nil }
        self.path = path
        device = status.st_dev
        inode = status.st_ino
    }

    /// Throws if no socket can be made at the path. An existing socket there is no fault.
    static func probe(_ path: String) throws(SystemError) {
        if let status = status(path), status.st_mode & S_IFMT != S_IFSOCK { throw SystemError("bind", code: EEXIST) }
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        try check("bind", unsafe access(folder, W_OK | X_OK))
    }

    private static func makeWay(for path: String) throws(SystemError) {
        guard let status = status(path) else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw SystemError("bind", code: EEXIST) }
        guard try !answers(path) else { throw SystemError("bind", code: EADDRINUSE) }
        try check("unlink", unsafe unlink(path))
    }

    /// Whether a process may be listening at the path. Only a refused connection proves that none is.
    private static func answers(_ path: String) throws(SystemError) -> Bool {
        let probe = try check("socket", socket(AF_UNIX, heimdallr_stream_flags, 0))
        defer { close(probe) }
        let result = try unsafe SocketAddress(.unix(path: path)).withKernelForm { unsafe connect(probe, $0, $1) }
        return result == 0 || errno != ECONNREFUSED
    }

    private static func status(_ path: String) -> stat? {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status : nil
    }
}

/// A lock on a folder against other heimdallr-proxy processes, held while a socket file is checked and replaced.
/// Without the lock, two processes that start at once could each remove the other's new file. The folder itself is
/// locked, so no lock file remains.
struct FolderLock: ~Copyable {
    /// The open folder; negative if it can't be opened. Then there is no lock.
    private let descriptor: Int32
    let isHeldElsewhere: Bool

    /// - Parameter patiently: waits up to a second for the lock. Must not be used on a loop.
    init(of path: String, patiently: Bool) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            isHeldElsewhere = false
            return
        }
        // Any process that can read the folder could hold the lock without end, so the wait is bounded.
        var tries = patiently ? 100 : 1
        var isHeldElsewhere = true
        while tries > 0, isHeldElsewhere {
            tries -= 1
            // File systems without locks return another error. Then there is no process to wait for.
            isHeldElsewhere = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)
            if isHeldElsewhere, tries > 0 { usleep(10_000) }
        }
        self.isHeldElsewhere = isHeldElsewhere
    }

    deinit { if descriptor >= 0 { close(descriptor) } }
}
