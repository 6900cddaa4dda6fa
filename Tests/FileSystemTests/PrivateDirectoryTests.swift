import FileSystem
import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct `A private directory` {
    private func directory() throws -> (PrivateDirectory, TemporaryDirectory) {
        let folder = try TemporaryDirectory()
        return (try PrivateDirectory(path: folder.path(of: "d")), folder)
    }

    @Test("files are replaced as a whole and read back, empty and large ones too", arguments: [0, 1, 16_384, 100_000])
    func replacing(count: Int) throws {
        let (directory, folder) = try directory()
        defer { _ = folder }
        #expect(try directory.read("f", limit: 100_000) == nil)
        for _ in 0..<3 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0 ... .max) }
            try directory.replace("f", with: bytes)
            #expect(try directory.read("f", limit: 100_000) == bytes)
        }
        if count > 0 {
            #expect(throws: FileSystem.Fault.tooLarge(path: folder.path(of: "d/f"), limit: count - 1)) {
                try directory.read("f", limit: count - 1)
            }
        }
        try directory.remove("f")
        try directory.remove("f")
        #expect(try directory.read("f", limit: 1) == nil)
    }

    @Test("a reader gets one whole file or another, never a part, while they are replaced")
    func atomic() async throws {
        let (directory, folder) = try directory()
        defer { _ = folder }
        try directory.replace("f", with: [UInt8](repeating: 0, count: 50_000))
        let writer = Task.detached {
            for byte in 1...100 { try directory.replace("f", with: [UInt8](repeating: UInt8(byte), count: 50_000)) }
        }
        for _ in 0..<300 {
            let bytes = try #require(try directory.read("f", limit: 50_000))
            #expect(bytes.count == 50_000)
            #expect(bytes.allSatisfy { $0 == bytes[0] })
        }
        try await writer.value
    }

    @Test("a directory that is there is taken as it is; its name may end with slashes")
    func existing() throws {
        let folder = try TemporaryDirectory()
        _ = try PrivateDirectory(path: folder.path)
        #expect(try PrivateDirectory(path: folder.path + "//").path == folder.path)
        #expect(throws: FileSystem.Fault.self) { try PrivateDirectory(path: "") }
        #expect(throws: FileSystem.Fault.self) { try PrivateDirectory(path: folder.path + "/a\0b") }
    }

    @Test("a folder open to everybody stays open: the advice is a new folder in it")
    func everybodys() throws {
        let folder = try TemporaryDirectory()
        #expect(unsafe chmod(folder.path, 0o1777) == 0)
        let error = #expect(throws: FileSystem.Fault.self) { try PrivateDirectory(path: folder.path) }
        #expect(error.map { "\($0)" }?.contains("name a new folder in it") == true)
        #expect(error.map { "\($0)" }?.contains("chmod") == false)
    }

    @Test("a lock keeps out whoever asks next, until its last reference goes")
    func locks() throws {
        let (directory, folder) = try directory()
        defer { _ = folder }
        var lock = try directory.tryLock("l")
        #expect(lock != nil)
        #expect(try directory.tryLock("l") == nil)
        #expect(try directory.tryLock("m") != nil)
        lock = nil
        #expect(try directory.tryLock("l") != nil)
    }

    @Test("a lock goes with its process, however it ends")
    func killed() async throws {
        let (directory, folder) = try directory()
        _ = try directory.tryLock("l")
        let path = folder.path(of: "d/l")
        let holder = try ChildProcess(["flock", path, "sleep", "60"])
        try await eventually("the other process has it") { try directory.tryLock("l") == nil }
        holder.kill()
        try await holder.ended()
        try await eventually("it is free") { try directory.tryLock("l") != nil }
    }

    @Test("a new file for a secret is this user's alone, and never takes the place of another")
    func newFile() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "key")
        try FileSystem.create(path, with: [1, 2, 3])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        for taken in [path, folder.path] {
            #expect(throws: FileSystem.Fault.system(operation: "create", path: taken, errno: EEXIST)) {
                try FileSystem.create(taken, with: [4])
            }
        }
        try FileManager.default.createSymbolicLink(
            atPath: folder.path(of: "link"), withDestinationPath: folder.path(of: "nowhere"))
        #expect(throws: FileSystem.Fault.self) {
            try FileSystem.create(folder.path(of: "link"), with: [4])
        }
        #expect(try FileSystem.read(path, limit: 3) == [1, 2, 3])
    }
}
