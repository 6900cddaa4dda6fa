import FileSystem
import Foundation
import TestSupport
import Testing

@testable import HeimdallrProxy

@Suite("trust files of processes that were killed", .timeLimit(.minutes(3)))
struct TrustFolderTests {
    private let directory: TemporaryDirectory
    private let roots: [UInt8]

    init() async throws {
        directory = try TemporaryDirectory()
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: directory.path)
        let authority = try await PrivateCA()
        roots = Array(try Data(contentsOf: URL(fileURLWithPath: authority.certificateFile)))
    }

    private func trust(_ name: String) throws -> TrustFolder {
        try TrustFolder(roots: roots, folder: directory.path(of: "heimdallr-proxy-\(TrustFolder.nameEnd(name))"))
    }

    private var names: Set<String> {
        get throws { Set(try FileManager.default.contentsOfDirectory(atPath: directory.path)) }
    }

    @Test func `trust files of a dead process are removed by the next proxy, and those in use are not`() throws {
        let used = try trust("1")
        // The lock goes with the object, as it does with a process.
        let left = try trust("2").files.folder
        try #require(FileManager.default.fileExists(atPath: left + "/bundle.pem"))
        let next = try trust("3")
        next.removeAbandoned()
        #expect(!FileManager.default.fileExists(atPath: left))
        for folder in [used.files.folder, next.files.folder] {
            #expect(FileManager.default.fileExists(atPath: folder + "/bundle.pem"))
        }
        used.end()
        next.end()
        #expect(try names.isEmpty)
    }

    @Test func `a link, a file and other names beside abandoned trust files stay`() throws {
        let precious = directory.path(of: "precious")
        FileSystem.makeFolder(precious, mode: 0o700)
        try directory.write("kept", to: "precious/file")
        let link = directory.path(of: "heimdallr-proxy-1.trust")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: precious)
        try directory.write("kept", to: "heimdallr-proxy-2.trust")
        FileSystem.makeFolder(directory.path(of: "heimdallr-proxy-3.sock"), mode: 0o700)
        FileSystem.makeFolder(directory.path(of: "heimdallr-proxy-4.trust"), mode: 0o700)
        // Others may change it.
        FileSystem.setMode(directory.path(of: "heimdallr-proxy-4.trust"), 0o777)
        let before = try names
        let made = try trust("5")
        made.removeAbandoned()
        made.end()
        #expect(try names == before)
        #expect(try directory.read("precious/file") == "kept")
    }

    /// PHP_INI_SCAN_DIR and WGETRC name code in the folder, and /tmp is cleaned.
    @Test func `where others could make the trust folder anew, it has a name that they can't know`() throws {
        let plain = directory.path(of: "heimdallr-proxy-8080.\(TrustFolder.nameEnd("127.0.0.1"))")
        // Above it is /tmp.
        try #require(!TrustFolderPath.isLasting(plain))
        let hidden = TrustFolderPath.forWriting(plain)
        #expect(hidden.hasPrefix(plain.dropLast(6) + ".") && hidden.hasSuffix(".trust"))
        #expect(hidden.utf8.count == plain.utf8.count + 27 && TrustFolderPath.forWriting(plain) == hidden)
        let made = try TrustFolder(roots: roots, folder: hidden)
        #expect(TrustFolderPath.candidates(plain) == [plain, hidden])
        // Another listener's.
        let other = directory.path(of: "heimdallr-proxy-8080.\(TrustFolder.nameEnd("127.0.0"))")
        #expect(TrustFolderPath.candidates(other) == [other])
        made.end()
        #expect(TrustFolderPath.candidates(plain) == [plain])
    }

    @Test func `where others can't make the trust folder, it keeps its name after a restart`() throws {
        let plain = "/usr/heimdallr-proxy-8080.\(TrustFolder.nameEnd("127.0.0.1"))"
        try #require(FileStatus(of: "/usr")?.mode == 0o755)
        #expect(TrustFolderPath.forWriting(plain) == plain)
    }

    @Test func `a trust folder that two processes use is removed with the last one`() throws {
        let (former, successor) = (try trust("1"), try trust("1"))
        former.end()
        #expect(FileManager.default.fileExists(atPath: successor.files.folder + "/bundle.pem"))
        successor.end()
        #expect(try names.isEmpty)
    }

    @Test func `a trust folder of a process that starts now is never taken for one left behind`() async throws {
        let directory = directory
        try await withThrowingTaskGroup { group in
            for number in 0..<4 {
                group.addTask {
                    for _ in 0..<12 {
                        let made = try self.trust("\(number)")
                        made.removeAbandoned()
                        try #require(FileManager.default.fileExists(atPath: made.files.folder + "/roots.pem"))
                        made.end()
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    }
}
