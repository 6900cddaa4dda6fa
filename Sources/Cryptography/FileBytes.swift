import Glibc

/// Bytes into open files.
enum FileBytes {
    /// Writes all of it and returns when it would survive a power cut. write(2), fsync(2).
    static func writeDurably(_ bytes: [UInt8], to descriptor: Int32, path: String) throws(CryptographyError) {
        // The file mode creation mask may have taken bits from the owner too.
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
        while fsync(descriptor) != 0 {
            guard errno == EINTR else { throw .system(operation: "write", path: path, errno: errno) }
        }
    }
}

/// Files of this user's own.
public enum PrivateFile {
    /// Makes a file, mode 0600, with these bytes; they are durable when this returns.
    /// - Throws: `CryptographyError.system`, with EEXIST when there is a file already, which stays as it is.
    public static func create(path: String, with bytes: [UInt8]) throws(CryptographyError) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system(operation: "create", path: path, errno: errno) }
        defer { close(descriptor) }
        do throws(CryptographyError) {
            try FileBytes.writeDurably(bytes, to: descriptor, path: path)
        } catch {
            _ = unsafe unlink(path)
            throw error
        }
    }
}
