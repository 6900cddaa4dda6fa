import Glibc

/// Writes bytes to open files.
enum FileBytes {
    /// Sets mode 0600, writes all bytes and closes the file. Returns when a power cut can't lose the bytes. fsync(2).
    /// - Parameter isWhole: whether the file ends after the bytes, even if it was longer.
    static func writeDurably(
        _ bytes: [UInt8], closing descriptor: Int32, path: String, isWhole: Bool = false
    ) throws(CryptographyError) {
        var isOpen = true
        defer { if isOpen { close(descriptor) } }
        // The umask may have removed the owner's permissions.
        guard fchmod(descriptor, 0o600) == 0 else {
            throw .system(operation: "set the mode of", path: path, errno: errno)
        }
        var start = 0
        while start < bytes.count {
            let written = unsafe bytes.withUnsafeBytes { buffer in
                unsafe write(descriptor, buffer.baseAddress?.advanced(by: start), buffer.count - start)
            }
            if written < 0, errno == EINTR { continue }
            guard written >= 0 else { throw .system(operation: "write", path: path, errno: errno) }
            start += written
        }
        guard !isWhole || ftruncate(descriptor, bytes.count) == 0 else {
            throw .system(operation: "cut", path: path, errno: errno)
        }
        while fsync(descriptor) != 0 {
            guard errno == EINTR else { throw .system(operation: "write", path: path, errno: errno) }
        }
        isOpen = false
        // Some file systems report a full disk only here.
        guard close(descriptor) == 0 || errno == EINTR else {
            throw .system(operation: "write", path: path, errno: errno)
        }
    }
}

/// Files that only this user can read.
public enum PrivateFile {
    /// Creates a file with mode 0600 and these bytes, which are durable when this returns.
    /// - Throws: `CryptographyError.system`, with EEXIST when the file exists. An existing file stays unchanged.
    public static func create(path: String, with bytes: [UInt8]) throws(CryptographyError) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system(operation: "create", path: path, errno: errno) }
        do throws(CryptographyError) {
            try FileBytes.writeDurably(bytes, closing: descriptor, path: path)
        } catch {
            _ = unsafe unlink(path)
            throw error
        }
    }
}
