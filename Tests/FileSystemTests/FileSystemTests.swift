import FileSystem
import Foundation
import TestSupport
import Testing

@Suite("Files and folders")
struct FileSystemTests {
    @Test func `a file is read whole, up to the limit, and not beyond`() throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write(String(repeating: "a", count: 40_000), to: "f")
        #expect(try FileSystem.read(path, limit: 40_000).count == 40_000)
        #expect(throws: FileSystem.Fault.tooLarge(path: path, limit: 39_999)) {
            try FileSystem.read(path, limit: 39_999)
        }
        #expect(throws: FileSystem.Fault.self) { try FileSystem.read(path + "x", limit: 9) }
        #expect(throws: FileSystem.Fault.self) { try FileSystem.read(folder.path, limit: 9) }
        // The path in front of the NUL byte would do.
        #expect(throws: FileSystem.Fault.self) { try FileSystem.read(path + "\0x", limit: 1 << 20) }
        #expect(try FileSystem.read("/proc/self/status", limit: 1 << 20).count > 100)
    }

    @Test func `the status of a file has its kind, its owner and its mode`() throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write("a", to: "f")
        #expect(unsafe chmod(path, 0o640) == 0)
        let status = try #require(FileStatus(of: path))
        #expect(status.kind == .regular && status.mode == 0o640 && status.owner == geteuid())
        #expect(FileStatus(of: folder.path)?.kind == .folder)
        #expect(FileStatus(of: path + "x") == nil && FileStatus(of: path + "\0") == nil)
        #expect(FileStatus(of: "/dev/null")?.kind == .other)
        let link = folder.path(of: "link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        #expect(FileStatus(ofLinkAt: link)?.kind == .link)
        #expect(FileStatus(of: link) == status)
        try FileManager.default.createSymbolicLink(atPath: folder.path(of: "dangling"), withDestinationPath: "nowhere")
        #expect(!FileSystem.exists(folder.path(of: "dangling")))
    }

    @Test func `a file is replaced in one step, with its mode, or not at all`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "f")
        try FileSystem.replace(path, with: [], mode: 0o600)
        #expect(try FileStatus(of: path)?.mode == 0o600 && FileSystem.read(path, limit: 0).isEmpty)
        let before = try #require(FileStatus(of: path)?.number)
        let bytes = [UInt8](repeating: 7, count: 300_000)
        try FileSystem.replace(path, with: bytes, mode: 0o666)
        #expect(try FileSystem.read(path, limit: 300_000) == bytes)
        // A reader of the old one keeps it.
        #expect(FileStatus(of: path)?.number != before && FileStatus(of: path)?.mode == 0o666)
        #expect(FileSystem.makeFolder(folder.path(of: "g"), mode: 0o700))
        for path in [folder.path(of: "g"), folder.path(of: "none/f"), path + "\0"] {
            #expect(throws: FileSystem.Fault.self) { try FileSystem.replace(path, with: bytes, mode: 0o600) }
        }
        #expect(Set(FileSystem.names(in: folder.path)) == ["f", "g"])
    }

    @Test func `a folder is made once, listed and removed when empty`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "new")
        #expect(FileSystem.makeFolder(path, mode: 0o700))
        #expect(!FileSystem.makeFolder(path, mode: 0o700))
        #expect(FileStatus(of: path)?.mode == 0o700)
        #expect(FileSystem.names(in: path).isEmpty)
        let long = String(repeating: "ä", count: 127)
        #expect(FileSystem.makeFolder("\(path)/\(long)", mode: 0o700))
        #expect(FileSystem.makeFolder("\(path)/.hidden", mode: 0o700))
        #expect(Set(FileSystem.names(in: path)) == [long, ".hidden"])
        #expect(!FileSystem.remove(path))
        for name in FileSystem.names(in: path) { #expect(FileSystem.remove("\(path)/\(name)")) }
        #expect(FileSystem.remove(path))
        #expect(FileSystem.names(in: path).isEmpty)
    }

    @Test func `a file tells whether this user may read and run it`() throws {
        #expect(FileSystem.isExecutable("/bin/sh") && FileSystem.isReadable("/bin/sh"))
        let folder = try TemporaryDirectory()
        let path = try folder.write("a", to: "f")
        #expect(FileSystem.isReadable(path) && !FileSystem.isExecutable(path))
        #expect(!FileSystem.isReadable(path + "x") && !FileSystem.isReadable(path + "\0"))
    }
}
