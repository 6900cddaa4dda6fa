import Glibc

/// Access to files and folders by the C library. All calls block. Paths with a NUL byte are refused.
public enum FileSystem {
    /// Returns the content of a file, also of a file of unknown size, as in /proc.
    /// - Parameter limit: size limit in bytes.
    public static func read(_ path: String, limit: Int) throws(Fault) -> [UInt8] {
        guard !path.utf8.contains(0) else { throw .system(operation: "read", path: path, errno: EINVAL) }
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system(operation: "read", path: path, errno: errno) }
        defer { close(descriptor) }
        return try FileBytes.read(descriptor, path: path, limit: limit)
    }

    /// Returns the path from the root on, for one that may begin in the working folder. getcwd(3).
    public static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = unsafe getcwd(nil, 0) else { return path }
        defer { unsafe free(folder) }
        return unsafe String(cString: folder) + "/" + path
    }

    /// Whether a file of any kind exists at the path; `false` for a dangling symbolic link.
    public static func exists(_ path: String) -> Bool { FileStatus(of: path) != nil }

    /// Whether this process can create and remove files in a folder: access(2).
    public static func isWritable(_ folder: String) -> Bool { allows(W_OK | X_OK, folder) }

    /// Whether this process can read the file: access(2).
    public static func isReadable(_ path: String) -> Bool { allows(R_OK, path) }

    /// Whether this process can execute the file: access(2).
    public static func isExecutable(_ path: String) -> Bool { allows(X_OK, path) }

    private static func allows(_ mode: Int32, _ path: String) -> Bool {
        unsafe !path.utf8.contains(0) && access(path, mode) == 0
    }

    /// Whether the disk of a folder has no room for a small file: statvfs(3). `false` if the disk does not tell.
    public static func isFull(_ folder: String) -> Bool {
        var disk = statvfs()
        guard !folder.utf8.contains(0), unsafe statvfs(folder, &disk) == 0 else { return false }
        let isRoot = geteuid() == 0
        let blocks = UInt64(isRoot ? disk.f_bfree : disk.f_bavail)
        let files = UInt64(isRoot ? disk.f_ffree : disk.f_favail)
        let room = blocks.multipliedReportingOverflow(by: UInt64(disk.f_frsize))
        return !room.overflow && room.partialValue < 8 << 10 || disk.f_files > 0 && files == 0
    }

    /// Returns the names in a folder, in no particular order; empty for an unreadable folder. readdir(3).
    public static func names(in folder: String) -> [String] {
        guard !folder.utf8.contains(0), let stream = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// - Returns: `false` when the folder already exists, or mkdir(2) fails.
    @discardableResult
    public static func makeFolder(_ path: String, mode: UInt32) -> Bool {
        unsafe !path.utf8.contains(0) && mkdir(path, mode) == 0
    }

    /// - Returns: `false` when chmod(2) fails.
    @discardableResult
    public static func setMode(_ path: String, _ mode: UInt32) -> Bool {
        unsafe !path.utf8.contains(0) && chmod(path, mode) == 0
    }

    /// Removes a file or an empty folder.
    /// - Returns: `false` when remove(3) fails, also for a missing file.
    @discardableResult
    public static func remove(_ path: String) -> Bool { unsafe !path.utf8.contains(0) && Glibc.remove(path) == 0 }
}
