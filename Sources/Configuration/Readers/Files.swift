import FileSystem
import Glibc

/// Reads and inspects files that the configuration names. No other code in this target reads the disk.
enum Files {
    /// Returns the bytes of a file. The error message follows "PATH: ".
    static func read(_ path: String, limit: Int) throws(BadValue) -> [UInt8] {
        guard !path.utf8.contains(0) else { throw BadValue("a path can't hold a NUL byte", quotes: false) }
        guard let status = FileStatus(of: path) else {
            throw BadValue("there is no such file: make it, or correct the path", quotes: false)
        }
        guard status.kind != .folder else { throw BadValue("this is a directory, not a file", quotes: false) }
        guard FileSystem.isReadable(path) else {
            throw BadValue("this process may not read the file; see its owner and mode", quotes: false)
        }
        guard status.kind == .regular else { throw BadValue("this is not a regular file", quotes: false) }
        do throws(FileSystem.Fault) {
            return try FileSystem.read(path, limit: limit)
        } catch {
            if case .tooLarge = error { throw BadValue("the file is larger than \(limit / 1024) KiB", quotes: false) }
            throw BadValue("reading the file failed", quotes: false)
        }
    }

    /// Whether a PEM file has a private key.
    static func holdsKey(_ path: String) -> Bool {
        (try? read(path, limit: 4 << 20))?.firstRange(of: Array("PRIVATE KEY-----".utf8)) != nil
    }

    /// Returns the mode of a file that too many users may read; `nil` for a safe mode. The file's group may read it if
    /// another user, such as root, owns it: the process may then have access only by the group.
    static func modeForOthers(_ path: String) -> String? {
        guard let status = FileStatus(of: path) else { return nil }
        let others = status.mode & 0o004 != 0 || status.mode & 0o040 != 0 && status.owner == geteuid()
        return others ? String(status.mode, radix: 8) : nil
    }

    /// Returns advice about a program that can't be run; `nil` if no fault is known. A name without a path is searched
    /// in `PATH` later, when the program runs.
    static func programFault(_ program: String) -> String? {
        guard program.utf8.contains(UInt8(ascii: "/")) else {
            return program.isEmpty ? "write the name of a program" : nil
        }
        guard program.hasPrefix("/") else { return "write a program's name, or its absolute path" }
        guard isProgram(program) else { return "write the path of a program that this process may run" }
        return nil
    }

    /// Whether posix_spawnp(3) finds a name without a path. Without `PATH`, the C library uses a default.
    static func isInPath(_ name: String, _ path: String?) -> Bool {
        (path ?? "/bin:/usr/bin").split(separator: ":", omittingEmptySubsequences: false).contains { folder in
            isProgram(folder.isEmpty ? name : "\(folder)/\(name)")
        }
    }

    /// Whether the path is an executable file. Folders can be executable too, so the kind is checked.
    private static func isProgram(_ path: String) -> Bool {
        FileStatus(of: path)?.kind == .regular && FileSystem.isExecutable(path)
    }
}
