import Glibc

/// Reads and writes open files.
enum FileBytes {
    /// Reads to the end, also of a file of unknown size, as in /proc.
    static func read(
        _ descriptor: Int32, path: String, limit: Int
    ) throws(FileSystem.Fault) -> [UInt8] {
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .system(operation: "read", path: path, errno: errno) }
            guard count > 0 else { return content }
            content += chunk[..<count]
            guard content.count <= limit else { throw .tooLarge(path: path, limit: limit) }
        }
    }

    /// Sets the mode, writes all bytes and closes the file.
    /// - Parameters:
    ///   - isDurable: whether to wait until a power cut can't lose the bytes. fsync(2).
    ///   - isWhole: whether the file ends after the bytes, even if it was longer.
    static func write(
        _ bytes: [UInt8], closing descriptor: Int32, path: String, mode: UInt32 = 0o600, isDurable: Bool = true,
        isWhole: Bool = false
    ) throws(FileSystem.Fault) {
        var isOpen = true
        defer { if isOpen { close(descriptor) } }
        // The umask may have removed permissions.
        guard fchmod(descriptor, mode) == 0 else {
            throw .system(operation: "set the mode of", path: path, errno: errno)
        }
        var start = 0
        while start < bytes.count {
            let written = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor, buffer.baseAddress?.advanced(by: start), buffer.count - start)
            }
            if written < 0, errno == EINTR { continue }
            guard written >= 0 else { throw .system(operation: "write", path: path, errno: errno) }
            start += written
        }
        guard !isWhole || ftruncate(descriptor, bytes.count) == 0 else {
            throw .system(operation: "cut", path: path, errno: errno)
        }
        while isDurable, fsync(descriptor) != 0 {
            guard errno == EINTR else { throw .system(operation: "write", path: path, errno: errno) }
        }
        isOpen = false
        // Some file systems report a full disk only here.
        guard close(descriptor) == 0 || errno == EINTR else {
            throw .system(operation: "write", path: path, errno: errno)
        }
    }
}

extension FileSystem {
    /// Creates a file of mode 0600 with these bytes, which are durable when this returns.
    /// - Throws: `Fault.system`, with EEXIST when the file exists. An existing file stays unchanged.
    public static func create(_ path: String, with bytes: [UInt8]) throws(Fault) {
        try create(path, with: bytes, mode: 0o600, isDurable: true)
    }

    /// Replaces a file atomically: a reader gets the whole old or the whole new content. Calls for one path may run
    /// concurrently. The content may not survive a power cut. rename(2).
    /// - Parameter mode: permissions of the file, regardless of the umask.
    public static func replace(_ path: String, with bytes: [UInt8], mode: UInt32) throws(Fault) {
        let draft = "\(path).\(UInt64.random(in: 0 ... .max))"
        do throws(Fault) { try create(draft, with: bytes, mode: mode, isDurable: false) } catch {
            guard case .system(_, _, let number) = error else { throw error }
            throw .system(operation: "write", path: path, errno: number)
        }
        guard unsafe rename(draft, path) == 0 else {
            let number = errno
            _ = unsafe unlink(draft)
            throw .system(operation: "write", path: path, errno: number)
        }
    }

    private static func create(
        _ path: String, with bytes: [UInt8], mode: UInt32, isDurable: Bool
    ) throws(Fault) {
        guard !path.utf8.contains(0) else { throw .system(operation: "create", path: path, errno: EINVAL) }
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system(operation: "create", path: path, errno: errno) }
        do throws(Fault) {
            try FileBytes.write(bytes, closing: descriptor, path: path, mode: mode, isDurable: isDurable)
        } catch {
            _ = unsafe unlink(path)
            throw error
        }
    }
}
