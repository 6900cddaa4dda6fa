import Foundation
import Glibc
import TestSupport
import Testing

@testable import Heimdallr

/// What is wrong with a disk, a key or a file is said clearly, and the old record stays as it was.
@Suite struct `The file store's faults` {
    static let isRoot = geteuid() == 0

    /// A store whose record can't be read: loading and saving say why, and the file is not touched.
    private func expectRefusal(
        _ ground: FileStoreGround, containing words: String, key: TokenStoreKey? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let before = try? ground.bytes()
        let store = ground.store(key: key)
        let load = await storeFault(sourceLocation: sourceLocation) { _ = try await store.load(client: "billing") }
        let save = await storeFault(sourceLocation: sourceLocation) {
            try await store.save(FileStoreGround.record(9), client: "billing")
        }
        for fault in [load, save] {
            #expect(fault?.description.contains(words) == true, "\(fault as Any)", sourceLocation: sourceLocation)
            for secret in ["R1", "T1", "T9"] {
                #expect(fault?.description.contains(secret) == false, sourceLocation: sourceLocation)
            }
        }
        #expect((try? ground.bytes()) == before, sourceLocation: sourceLocation)
    }

    private func groundWithRecord() async throws -> FileStoreGround {
        let ground = try FileStoreGround()
        try await ground.store().save(FileStoreGround.record(), client: "billing")
        return ground
    }

    // MARK: Records

    @Test("a change of any byte of a record is noticed, and the record stays for whoever can mend it")
    func tampering() async throws {
        let ground = try await groundWithRecord()
        let good = try ground.bytes()
        let store = ground.store()
        for index in good.indices {
            var bytes = good
            bytes[index] ^= 0x01
            try ground.overwrite(with: bytes)
            let fault = await storeFault { _ = try await store.load(client: "billing") }
            #expect(fault?.description.contains("billing.token") == true, "byte \(index)")
        }
        try await expectRefusal(ground, containing: "remove")
        try ground.overwrite(with: good)
        #expect(try await store.load(client: "billing")?.refreshToken == Secret("R1"))
    }

    @Test("a record cut off anywhere is noticed, an empty file too")
    func truncated() async throws {
        let ground = try await groundWithRecord()
        let good = try ground.bytes()
        let store = ground.store()
        for count in 0..<good.count {
            try ground.overwrite(with: Array(good.prefix(count)))
            #expect(await storeFault { _ = try await store.load(client: "billing") } != nil, "\(count) bytes")
        }
        try await expectRefusal(ground, containing: "restore it, or remove it")
    }

    @Test("the wrong key, another format and another client's record are told apart")
    func reasons() async throws {
        let ground = try await groundWithRecord()
        try await expectRefusal(ground, containing: "sealed with another key", key: try FileStoreGround.key(2))
        let good = try ground.bytes()
        for (format, words) in [(UInt8(0), "an earlier version"), (3, "a later version")] {
            var bytes = good
            bytes[8] = format
            try ground.overwrite(with: bytes)
            try await expectRefusal(ground, containing: words)
        }
        try ground.overwrite(with: good)
        try FileManager.default.copyItem(atPath: ground.path(), toPath: ground.path("other"))
        let renamed = await storeFault { _ = try await ground.store().load(client: "other") }
        #expect(renamed?.description.contains("belongs to something else") == true)
        try ground.overwrite(with: Array("{}".utf8))
        try await expectRefusal(ground, containing: "not a sealed record")
    }

    @Test("a file that is far too large is not read")
    func large() async throws {
        let ground = try await groundWithRecord()
        Disk.truncate(ground.path(), to: 1 << 32)
        let fault = await storeFault { _ = try await ground.store().load(client: "billing") }
        #expect(fault?.description.contains("larger than") == true)
        Disk.truncate(ground.path(), to: 0)
    }

    @Test("a record that would be too large to read is not written")
    func largeRecord() async throws {
        let ground = try await groundWithRecord()
        var record = FileStoreGround.record(2)
        record.extra = ["x": .string(String(repeating: "x", count: 5 << 20))]
        let fault = await storeFault { try await ground.store().save(record, client: "billing") }
        #expect(fault?.description.contains("larger than") == true)
        #expect(try await ground.store().load(client: "billing")?.revision == 1)
    }

    // MARK: Who may read it

    @Test(
        "a directory or a file that others may use is refused", arguments: [0o001, 0o010, 0o040, 0o004, 0o020, 0o002])
    func modes(extra: Int) async throws {
        let ground = try await groundWithRecord()
        Disk.chmod(ground.path(), 0o600 | extra)
        try await expectRefusal(ground, containing: "`chmod 600` it")
        Disk.chmod(ground.path(), 0o600)
        Disk.chmod(ground.directory, 0o700 | extra)
        try await expectRefusal(ground, containing: "`chmod 700` it")
        let prepared = await storeFault { try await ground.store().prepare() }
        #expect(prepared?.kind == .misconfigured)
        Disk.chmod(ground.directory, 0o700)
        Disk.chmod("\(ground.directory)/billing.lock", 0o600 | extra)
        let fault = await storeFault { _ = try await ground.store().lease(client: "billing") }
        #expect(fault?.description.contains("billing.lock is open to other users") == true)
    }

    @Test("a symbolic link is not followed: not as the directory, the record, or the lock")
    func links() async throws {
        let manager = FileManager.default
        let ground = try await groundWithRecord()
        try manager.moveItem(atPath: ground.path(), toPath: ground.folder.path(of: "real"))
        try manager.createSymbolicLink(atPath: ground.path(), withDestinationPath: ground.folder.path(of: "real"))
        try await expectRefusal(ground, containing: "is a symbolic link")
        try manager.removeItem(atPath: "\(ground.directory)/billing.lock")
        try manager.createSymbolicLink(
            atPath: "\(ground.directory)/billing.lock", withDestinationPath: ground.folder.path(of: "real"))
        #expect(
            await storeFault { _ = try await ground.store().lease(client: "billing") }?.description.contains(
                "is a symbolic link") == true)
        try manager.moveItem(atPath: ground.directory, toPath: ground.folder.path(of: "elsewhere"))
        try manager.createSymbolicLink(
            atPath: ground.directory, withDestinationPath: ground.folder.path(of: "elsewhere"))
        for directory in [ground.directory, ground.directory + "/"] {
            let store = OAuthAccessTokenFileStore(directory: directory, key: ground.key)
            let fault = await storeFault { try await store.prepare() }
            #expect(fault?.description.contains("is a symbolic link") == true)
            #expect(fault?.kind == .misconfigured)
        }
    }

    @Test("what is no directory or no file is refused, and nothing hangs")
    func kinds() async throws {
        let ground = try FileStoreGround()
        try ground.folder.write("x", to: "state")
        #expect(await storeFault { try await ground.store().prepare() }?.kind == .misconfigured)
        try FileManager.default.removeItem(atPath: ground.directory)
        try await ground.store().prepare()
        Disk.makeFIFO(ground.path())
        try await expectRefusal(ground, containing: "is not a regular file")
        let missing = OAuthAccessTokenFileStore(directory: ground.directory + "/a/b", key: ground.key)
        let fault = await storeFault { try await missing.prepare() }
        #expect(fault?.kind == .misconfigured)
        #expect(fault?.description.contains("No such file or directory") == true)
    }

    @Test("a directory or a file of another user is refused", .enabled(if: isRoot, "only root can give files away"))
    func owners() async throws {
        let ground = try await groundWithRecord()
        Disk.chown(ground.path(), to: 12345)
        try await expectRefusal(ground, containing: "belongs to user 12345")
        Disk.chown(ground.path(), to: 0)
        Disk.chown(ground.directory, to: 12345)
        try await expectRefusal(ground, containing: "belongs to user 12345")
    }

    // MARK: Disks

    @Test("a write that fails leaves the old record, and no debris that would fail the next one")
    func failingWrite() async throws {
        let ground = try await groundWithRecord()
        let store = ground.store()
        // A directory with something in it, where the new record would be written, stops root too.
        let obstacle = ground.path() + ".new"
        try FileManager.default.createDirectory(atPath: obstacle + "/full", withIntermediateDirectories: true)
        let fault = await storeFault { try await store.save(FileStoreGround.record(2), client: "billing") }
        #expect(fault?.description.contains("billing.token.new") == true)
        #expect(try await store.load(client: "billing")?.revision == 1)
        try FileManager.default.removeItem(atPath: obstacle)
        // What a killed process left half-written is no obstacle.
        try Data("half".utf8).write(to: URL(fileURLWithPath: obstacle))
        try await store.save(FileStoreGround.record(2), client: "billing")
        #expect(try await store.load(client: "billing")?.revision == 2)
        #expect(!FileManager.default.fileExists(atPath: obstacle))
    }

    @Test(
        "a full disk: a clear error, the old record untouched, and as soon as there is room it is saved",
        .enabled(SmallDisk.unavailable, SmallDisk.isAvailable))
    func full() async throws {
        try await SmallDisk.use { ground in
            let store = ground.store()
            try await store.save(FileStoreGround.record(), client: "billing")
            let filler = try SmallDisk.fill(ground)
            var record = FileStoreGround.record(2)
            record.extra = ["x": .string(String(repeating: "x", count: 8000))]
            let fault = await storeFault { try await store.save(record, client: "billing") }
            #expect(fault?.description.contains("No space left on device") == true)
            #expect(fault?.kind == .fault)
            #expect(try await store.load(client: "billing")?.revision == 1)
            #expect(!FileManager.default.fileExists(atPath: ground.path() + ".new"), "it takes no room")
            try FileManager.default.removeItem(atPath: filler)
            try await store.save(record, client: "billing")
            #expect(try await store.load(client: "billing")?.revision == 2)
        }
    }

    @Test(
        "a disk that can only be read: records are used, and saving is a clear error",
        .enabled(SmallDisk.unavailable, SmallDisk.isAvailable))
    func readOnly() async throws {
        try await SmallDisk.use { ground in
            try await ground.store().save(FileStoreGround.record(), client: "billing")
            try await ChildProcess.output(of: ["mount", "-o", "remount,ro", ground.directory])
            let store = ground.store()
            try await store.prepare()
            #expect(try await store.load(client: "billing")?.revision == 1)
            let fault = await storeFault { try await store.save(FileStoreGround.record(2), client: "billing") }
            #expect(fault?.description.contains("Read-only file system") == true)
            #expect(fault?.kind == .fault)
            #expect(try await store.load(client: "billing")?.revision == 1)
            // Where nothing can be written, nobody else can spend anything either: no reason to wait.
            #expect(await storeFault { _ = try await ground.store().remove(client: "billing") } != nil)
        }
    }
}
