import Glibc

/// Files and folders, by the C library's calls. All block; none follows what a NUL byte in a path would hide.
public enum FileSystem {
    public enum ReadError: Error, Equatable {
        /// There is none, or this process may not read it.
        case unreadable
        case tooLarge
    }

    /// The bytes of a file, also of one of /proc, which has no size beforehand.
    /// - Parameter limit: in bytes.
    public static func read(_ path: String, limit: Int) throws(ReadError) -> [UInt8] {
        guard !path.utf8.contains(0) else { throw .unreadable }
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .unreadable }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .unreadable }
            guard count > 0 else { return content }
            content += chunk[..<count]
            guard content.count <= limit else { throw .tooLarge }
        }
    }

    /// Whether there is one, of any kind; a link that leads nowhere is none.
    public static func exists(_ path: String) -> Bool { FileStatus(of: path) != nil }

    /// Whether files can be made and removed in a folder: access(2).
    public static func isWritable(_ folder: String) -> Bool { allows(W_OK | X_OK, folder) }

    /// access(2).
    public static func isReadable(_ path: String) -> Bool { allows(R_OK, path) }

    /// access(2).
    public static func isExecutable(_ path: String) -> Bool { allows(X_OK, path) }

    private static func allows(_ mode: Int32, _ path: String) -> Bool {
        unsafe !path.utf8.contains(0) && access(path, mode) == 0
    }

    /// The names in a folder, in no order; none for one that can't be read. readdir(3).
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

    /// - Returns: `false` when there is one already, or it can't be made. mkdir(2).
    @discardableResult
    public static func makeFolder(_ path: String, mode: UInt32) -> Bool {
        unsafe !path.utf8.contains(0) && mkdir(path, mode) == 0
    }

    /// - Returns: `false` when it could not be. chmod(2).
    @discardableResult
    public static func setMode(_ path: String, _ mode: UInt32) -> Bool {
        unsafe !path.utf8.contains(0) && chmod(path, mode) == 0
    }

    /// A file or an empty folder.
    /// - Returns: `false` when it is still there, or never was. remove(3).
    @discardableResult
    public static func remove(_ path: String) -> Bool {
        unsafe !path.utf8.contains(0) && Glibc.remove(path) == 0
    }
}
