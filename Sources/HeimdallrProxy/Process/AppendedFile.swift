// Every pointer here lives for the one call it is passed to.
import Glibc
import Synchronization

/// The file of the audit stream or the log can't be opened.
struct AuditFault: Error, CustomStringConvertible {
    enum Cause {
        /// open(2) failed with this `errno`, or the path is not a regular file.
        case call(Int32)
        /// Another user can change the file, or it has several names. The value is the fault with its remedy.
        case notOurs(String)
    }

    let path: String
    let cause: Cause
    /// The key or option that names the file.
    var setting = "audit.file"

    var description: String {
        switch cause {
        case .call(let number):
            "\(setting): \(path) can't be opened: \(SystemCallError(number: number).sentence). Name a file that the proxy's "
                + "user may write to, in a folder that exists; symbolic links, pipes and devices are refused"
        case .notOurs(let fault): "\(setting): \(path) is not written to: \(fault)"
        }
    }
}

/// The file of the audit stream, or of the log of `exec --serve`. Other programs may move it at any time. Any thread.
final class AppendedFile: LineOutput {
    let path: String
    private let lines: LineDescriptor
    private let isFailing = Mutex(false)
    private let changed: @Sendable (SystemCallError?) -> Void

    /// - Parameter changed: called with the first failed write's error, and with `nil` once writes succeed again.
    init(path: String, changed: @escaping @Sendable (SystemCallError?) -> Void) throws(AuditFault) {
        self.path = path
        self.changed = changed
        lines = LineDescriptor(try Self.open(path))
    }

    deinit { _ = Glibc.close(lines.number) }

    /// Opens the file. Refuses symbolic links, pipes and devices. Also refuses a file with several names, and a file
    /// that a user other than root and the proxy's user owns or can change.
    private static func open(_ path: String, making: Int32 = O_CREAT) throws(AuditFault) -> Int32 {
        let flags = O_WRONLY | O_APPEND | making | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let descriptor = unsafe Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw AuditFault(path: path, cause: .call(errno)) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            _ = Glibc.close(descriptor)
            throw AuditFault(path: path, cause: .call(EINVAL))
        }
        if let fault = fault(
            owner: status.st_uid, mode: status.st_mode, links: UInt64(status.st_nlink), user: geteuid())
        {
            _ = Glibc.close(descriptor)
            throw AuditFault(path: path, cause: .notOurs(fault))
        }
        return descriptor
    }

    /// Checks whether the file can be opened or created, but creates and changes nothing.
    static func check(_ path: String) throws(AuditFault) {
        do throws(AuditFault) { _ = Glibc.close(try open(path, making: 0)) } catch {
            guard case .call(ENOENT) = error.cause else { throw error }
            let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
            guard unsafe access(folder, W_OK | X_OK) == 0 else { throw AuditFault(path: path, cause: .call(errno)) }
        }
    }

    /// Returns the reason not to write to an existing file, with the remedy; `nil` if there is none.
    static func fault(owner: UInt32, mode: UInt32, links: UInt64, user: UInt32) -> String? {
        if owner != user, owner != 0 {
            return
                "it belongs to user \(owner), who can change its lines: give it to user \(user), who runs the proxy, "
                + "or to root (chown), or move it away"
        }
        if mode & 0o022 != 0 {
            return "its group or everybody may write to it: run chmod go-w"
        }
        if links > 1 { return "it has \(links) names (hard links): move it away, and the proxy creates a new file" }
        return nil
    }

    /// Opens the file that is now at the path, and closes the former one.
    func reopen() throws(AuditFault) { _ = Glibc.close(lines.replace(with: try Self.open(path))) }

    func take(_ bytes: [UInt8]) -> (count: Int, failure: SystemCallError?) {
        let result = lines.take(bytes)
        let hasFailed = result.failure != nil
        let isNews = isFailing.withLock { isFailing in
            defer { isFailing = hasFailed }
            return isFailing != hasFailed
        }
        if isNews { changed(result.failure) }
        return result
    }
}
