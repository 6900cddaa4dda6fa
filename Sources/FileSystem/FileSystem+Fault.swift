import Glibc

extension FileSystem {
    /// Reason why a file or folder was not used. Messages name paths, never contents.
    public enum Fault: Error, Sendable, Hashable, CustomStringConvertible {
        /// A system call failed: `operation` on the file or folder, with this errno(3).
        case system(operation: String, path: String, errno: Int32)
        case tooLarge(path: String, limit: Int)
        /// Other users can read or replace the file or folder. `reason` says what to do.
        case untrusted(path: String, reason: String)

        /// Whether a retry is useless until the configuration or the file system changes.
        public var isLasting: Bool {
            switch self {
            case .untrusted: true
            case .system(_, _, let number): number == ENOENT || number == ENOTDIR || number == ENAMETOOLONG
            case .tooLarge: false
            }
        }

        /// Whether a disk is full, or nothing may be made in a folder, although existing files may be written.
        public var isLackOfSpace: Bool {
            if case .system(_, _, let number) = self {
                [ENOSPC, EDQUOT, EACCES, EPERM].contains(number)
            } else {
                false
            }
        }

        /// strerror(3) is thread-safe in every supported C library.
        public var description: String {
            switch self {
            case .system(let operation, let path, let number):
                unsafe "can't \(operation) \(path): \(String(cString: strerror(number)))"
            case .tooLarge(let path, let limit): "\(path) is larger than \(limit) bytes"
            case .untrusted(let path, let reason): "\(path) \(reason)"
            }
        }
    }
}
