import FileSystem
import Glibc

/// Reads small files at start. The only code here that reads the disk.
enum Files {
    /// The bytes of a file. The error follows "PATH: ".
    static func read(_ path: String, limit: Int) throws(Misfit) -> [UInt8] {
        guard !path.utf8.contains(0) else { throw Misfit("a path can't hold a NUL byte", quotes: false) }
        guard let status = FileStatus(of: path) else { throw Misfit("there is no such file", quotes: false) }
        guard status.kind != .folder else { throw Misfit("this is a directory, not a file", quotes: false) }
        guard FileSystem.isReadable(path) else {
            throw Misfit("this process may not read the file; see its owner and mode", quotes: false)
        }
        guard status.kind == .regular else { throw Misfit("this is not a regular file", quotes: false) }
        do throws(FileSystem.ReadError) {
            return try FileSystem.read(path, limit: limit)
        } catch {
            switch error {
            case .tooLarge: throw Misfit("the file is larger than \(limit / 1024) KiB", quotes: false)
            case .unreadable: throw Misfit("reading the file failed", quotes: false)
            }
        }
    }

    /// The mode of a file that users other than its owner may read; `nil` when there are none. A group may read the
    /// file of another owner, such as root: this is how the process gets access.
    static func modeForOthers(_ path: String) -> String? {
        guard let status = FileStatus(of: path) else { return nil }
        let others = status.mode & 0o004 != 0 || status.mode & 0o040 != 0 && status.owner == geteuid()
        return others ? String(status.mode, radix: 8) : nil
    }

    /// The fault of a program that can't be run, to follow "write"; `nil` without a known fault. A bare name is
    /// searched in `PATH` when it is run.
    static func programFault(_ program: String) -> String? {
        guard program.utf8.contains(UInt8(ascii: "/")) else {
            return program.isEmpty ? "write the name of a program" : nil
        }
        guard program.hasPrefix("/") else { return "write a program's name, or its absolute path" }
        guard isProgram(program) else { return "write the path of a program that this process may run" }
        return nil
    }

    /// Whether posix_spawnp(3) finds a bare name. Without `PATH` the C library has a default.
    static func isInPath(_ name: String, _ path: String?) -> Bool {
        (path ?? "/bin:/usr/bin").split(separator: ":", omittingEmptySubsequences: false).contains { folder in
            isProgram(folder.isEmpty ? name : "\(folder)/\(name)")
        }
    }

    /// A folder can be executable too.
    private static func isProgram(_ path: String) -> Bool {
        FileStatus(of: path)?.kind == .regular && FileSystem.isExecutable(path)
    }
}
