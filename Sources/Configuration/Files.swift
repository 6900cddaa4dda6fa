import FoundationEssentials
import Glibc

/// Reading small files at start. The one place that touches the disk.
enum Files {
    /// The bytes of a file; the error says what is wrong with it, in words that follow "PATH: ".
    static func read(_ path: String, limit: Int) throws(Misfit) -> [UInt8] {
        guard !path.utf8.contains(0) else { throw Misfit("a path can't hold a NUL byte", quotes: false) }
        let manager = FileManager.default
        var isDirectory = false
        guard manager.fileExists(atPath: path, isDirectory: &isDirectory) else {
            throw Misfit("there is no such file", quotes: false)
        }
        guard !isDirectory else { throw Misfit("this is a directory, not a file", quotes: false) }
        guard manager.isReadableFile(atPath: path) else {
            throw Misfit("this process may not read the file; see its owner and mode", quotes: false)
        }
        guard let content = manager.contents(atPath: path) else {
            throw Misfit("this is not a regular file", quotes: false)
        }
        guard content.count <= limit else {
            throw Misfit("the file is larger than \(limit / 1024) KiB", quotes: false)
        }
        return Array(content)
    }

    /// The mode of a file that users other than its owner may read; `nil` where there are none. A group that reads what
    /// belongs to somebody else, such as root, was meant to: it is how this process comes to read it.
    static func modeForOthers(_ path: String) -> String? {
        let target = URL(filePath: path).resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: target),
            let mode = number(attributes[.posixPermissions])
        else { return nil }
        let owner = number(attributes[.ownerAccountID])
        let others = mode & 0o004 != 0 || mode & 0o040 != 0 && owner == Int(geteuid())
        return others ? String(mode & 0o7777, radix: 8) : nil
    }

    private static func number(_ value: Any?) -> Int? {
        // An integer, or where all of Foundation is loaded its NSNumber: both print as digits.
        value.flatMap { Int("\($0)") }
    }

    /// What keeps a program from being run, in words that follow "write"; `nil` when nothing is known to. A bare name is
    /// searched in `PATH` when the time comes.
    static func programFault(_ program: String) -> String? {
        guard program.utf8.contains(UInt8(ascii: "/")) else {
            return program.isEmpty ? "write the name of a program" : nil
        }
        guard program.hasPrefix("/") else { return "write a program's name, or its absolute path" }
        guard FileManager.default.isExecutableFile(atPath: program) else {
            return "write the path of a program that this process may run"
        }
        return nil
    }
}
