import Configuration
import Foundation
import Glibc
import TestSupport
import Testing

@testable import HeimdallrProxy

@Suite("the roots of a proxy of another user", .enabled(if: geteuid() == 0, "needs root"))
struct SharedRootsTests {
    private let directory: Folder
    private let folder: String

    /// In /run, because others can change what is above a folder in /tmp.
    private final class Folder: Sendable {
        let path = "/run/heimdallr-tests-\(UInt32.random(in: 0 ... .max))"
        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    init() throws {
        directory = Folder()
        folder = directory.path + "/heimdallr-proxy-1.127.0.0.1.trust"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        _ = FileManager.default.createFile(atPath: folder + "/roots.pem", contents: Data("roots".utf8))
        try set(0o755, 65534, directory.path)
        try set(0o711, 65534, folder)
        try set(0o644, 65534, folder + "/roots.pem")
    }

    private func set(_ mode: Int, _ owner: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode, .ownerAccountID: owner], ofItemAtPath: path)
    }

    @Test func `roots count where only their owner and root can change them`() throws {
        #expect(SharedRoots.read(in: folder) == Array("roots".utf8))
        for path in [directory.path, folder, folder + "/roots.pem"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let mode = try #require(attributes[.posixPermissions] as? Int)
            for (other, owner) in [(mode | 0o002, 65534), (mode | 0o020, 65534), (mode, 1234)] {
                try set(other, owner, path)
                #expect(SharedRoots.read(in: folder) == nil, "\(path) \(String(other, radix: 8)) \(owner)")
            }
            try set(mode, 65534, path)
        }
        #expect(SharedRoots.read(in: folder) == Array("roots".utf8))
    }

    @Test func `in a sticky folder only the folder of the listener's user counts`() throws {
        let sticky = try TemporaryDirectory()
        let inner = sticky.path(of: "roots")
        try FileManager.default.moveItem(atPath: folder, toPath: inner)
        try set(0o711, 65534, inner)
        try set(0o644, 65534, inner + "/roots.pem")
        try set(0o1777, 0, sticky.path)
        #expect(SharedRoots.read(in: inner) == nil && SharedRoots.read(in: inner, listener: 1234) == nil)
        #expect(SharedRoots.read(in: inner, listener: 65534) == Array("roots".utf8))
        let listener = try RawListener()
        #expect(SharedRoots.user(listeningAt: .tcp(host: "127.0.0.1", port: listener.port)) == 0)
        #expect(SharedRoots.user(listeningAt: .tcp(host: "127.0.0.2", port: listener.port)) == nil)
        #expect(SharedRoots.user(listeningAt: .unix(path: "/run/x", mode: nil)) == nil)
    }

    @Test func `links in place of the folder or the file are not followed`() throws {
        try FileManager.default.moveItem(atPath: folder, toPath: folder + ".real")
        try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: folder + ".real")
        #expect(SharedRoots.read(in: folder) == nil)
        let file = folder + ".real/roots.pem"
        #expect(SharedRoots.read(in: folder + ".real") != nil)
        try FileManager.default.moveItem(atPath: file, toPath: file + ".real")
        try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: file + ".real")
        #expect(SharedRoots.read(in: folder + ".real") == nil)
    }

    @Test func `a folder that others may only enter is the place for public files`() throws {
        #expect(SharedRoots.openFolder(["XDG_RUNTIME_DIR": directory.path]) == nil)
        try set(0o755, 0, directory.path)
        #expect(SharedRoots.openFolder(["RUNTIME_DIRECTORY": "/nowhere:\(directory.path)"]) == directory.path)
        try set(0o700, 0, directory.path)
        #expect(SharedRoots.openFolder(["XDG_RUNTIME_DIR": directory.path]) == nil)
        try set(0o777, 0, directory.path)
        #expect(SharedRoots.openFolder(["XDG_RUNTIME_DIR": directory.path]) == nil)
    }
}
