import FileSystem
import Foundation
import Glibc
import TestSupport
import Testing

@Suite("files for programs of other users")
struct PublishedFileTests {
    private let folder: TemporaryDirectory
    private let file: PublishedFile

    init() throws {
        folder = try TemporaryDirectory()
        file = PublishedFile(folder.path(of: "token"))
    }

    private func attribute(_ key: FileAttributeKey) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: file.path)[key] as? Int
    }

    @Test func `a published file is replaced as a whole, with its mode, and an open descriptor keeps the old bytes`()
        throws
    {
        try file.replace(with: Array("one".utf8), mode: 0o640, group: nil)
        let open = try #require(FileHandle(forReadingAtPath: file.path))
        try file.replace(with: Array("two".utf8), mode: 0o600, group: getegid())
        #expect(try folder.read("token") == "two")
        #expect(String(decoding: open.readDataToEndOfFile(), as: UTF8.self) == "one")
        #expect(try attribute(.posixPermissions) == 0o600 && attribute(.groupOwnerAccountID) == Int(getegid()))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["token"])
    }

    @Test func `removing a published file also removes drafts of a killed process, and nothing else`() throws {
        try file.replace(with: [1], mode: 0o600, group: nil)
        for name in [".token.123", ".token.x", ".token", "token.1"] { try folder.write("", to: name) }
        try file.remove()
        try file.remove()
        #expect(
            Set(try FileManager.default.contentsOfDirectory(atPath: folder.path)) == [".token.x", ".token", "token.1"])
    }

    @Test func `a link in place of a published file is refused, and its target stays`() throws {
        let target = try folder.write("precious", to: "target")
        try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: target)
        #expect(throws: FileSystem.Fault.self) { try file.replace(with: [1], mode: 0o600, group: nil) }
        try file.remove()
        #expect(try folder.read("target") == "precious")
        #expect(FileManager.default.fileExists(atPath: file.path))
    }

    @Test func `a folder that others can change is refused, a sticky one only as the file's own`() throws {
        let outer = folder.path(of: "outer")
        let inner = outer + "/inner"
        try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: true)
        let nested = PublishedFile(inner + "/token")
        func set(_ outerMode: Int, _ innerMode: Int) throws {
            for (path, mode) in [(outer, outerMode), (inner, innerMode)] {
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            }
        }
        for (one, other, isGood) in [
            (0o755, 0o755, true), (0o1777, 0o700, true), (0o777, 0o700, false), (0o775, 0o700, false),
            (0o755, 0o1777, false), (0o755, 0o775, false),
        ] {
            try set(one, other)
            let fault = Result { try nested.check() }
            #expect(
                ((try? fault.get()) != nil) == isGood, "\(String(one, radix: 8)) \(String(other, radix: 8)) \(fault)")
        }
        try set(0o755, 0o755)
        #expect(throws: FileSystem.Fault.self) { try PublishedFile("token").check() }
        #expect(throws: FileSystem.Fault.self) { try PublishedFile(outer + "/").check() }
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `a folder of another user is refused, and each group is one of this machine`() throws {
        try file.check()
        try FileManager.default.setAttributes([.ownerAccountID: 1234], ofItemAtPath: folder.path)
        #expect(throws: FileSystem.Fault.self) { try file.check() }
        try FileManager.default.setAttributes([.ownerAccountID: 0], ofItemAtPath: folder.path)
        #expect(FileSystem.groupID(of: "root") == 0 && FileSystem.groupID(of: "no-such-group") == nil)
        try file.replace(with: [1], mode: 0o640, group: 1234)
        #expect(try attribute(.groupOwnerAccountID) == 1234)
    }
}
