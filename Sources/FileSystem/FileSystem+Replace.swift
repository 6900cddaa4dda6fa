import Glibc

extension FileSystem {
    /// A file that could not be written.
    public struct WriteError: Error, Equatable, CustomStringConvertible {
        public let path: String
        /// errno(3).
        public let number: Int32

        public var description: String { unsafe "can't write \(path): \(String(cString: strerror(number)))" }
    }

    /// Replaces a file atomically: a reader gets the whole old or the whole new content. Calls for one path may run
    /// concurrently. The content may not survive a power cut. rename(2).
    /// - Parameter mode: permissions of the file, regardless of the umask.
    public static func replace(_ path: String, with bytes: [UInt8], mode: UInt32) throws(WriteError) {
        let draft = "\(path).\(UInt64.random(in: 0 ... .max))"
        guard !path.utf8.contains(0) else { throw WriteError(path: path, number: EINVAL) }
        let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw WriteError(path: path, number: errno) }
        var isDone = fchmod(descriptor, mode) == 0
        var start = 0
        while isDone, start < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe write(descriptor, buffer.baseAddress?.advanced(by: start), buffer.count - start)
            }
            if count >= 0 { start += count } else if errno != EINTR { isDone = false }
        }
        var number = errno
        // Some file systems report a full disk only here.
        if close(descriptor) != 0, errno != EINTR, isDone { (isDone, number) = (false, errno) }
        if isDone, unsafe rename(draft, path) != 0 { (isDone, number) = (false, errno) }
        guard isDone else {
            _ = unsafe unlink(draft)
            throw WriteError(path: path, number: number)
        }
    }
}
