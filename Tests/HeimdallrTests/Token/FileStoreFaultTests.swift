import Foundation
import Glibc
import TestSupport
import Testing

@testable import Heimdallr

/// A fault of a disk, a key or a file gets a clear message, and the old record stays.
@Suite struct `The file store's faults` {
    static let isRoot = geteuid() == 0

    /// A store whose record can't be read: loading and saving say why, and the file is not touched.
    private func expectRefusal(
        _ folder: FileStoreFolder, containing words: String, key: TokenStoreKey? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let before = try? folder.bytes()
        let store = folder.store(key: key)
        let load = await storeFault(sourceLocation: sourceLocation) { _ = try await store.load(client: "billing") }
        let save = await storeFault(sourceLocation: sourceLocation) {
            try await store.save(FileStoreFolder.record(9), client: "billing")
        }
        for fault in [load, save] {
            #expect(fault?.description.contains(words) == true, "\(fault as Any)", sourceLocation: sourceLocation)
            for secret in ["R1", "T1", "T9"] {
                #expect(fault?.description.contains(secret) == false, sourceLocation: sourceLocation)
            }
        }
        #expect((try? folder.bytes()) == before, sourceLocation: sourceLocation)
    }

    private func folderWithRecord() async throws -> FileStoreFolder {
        let folder = try FileStoreFolder()
        try await folder.store().save(FileStoreFolder.record(), client: "billing")
        return folder
    }

    // MARK: Records

    @Test("a change of any byte of a record is noticed, and the record stays for whoever can mend it")
    func tampering() async throws {
        let folder = try await folderWithRecord()
        let good = try folder.bytes()
        let store = folder.store()
        for index in good.indices {
            var bytes = good
            bytes[index] ^= 0x01
            try folder.overwrite(with: bytes)
            let fault = await storeFault { _ = try await store.load(client: "billing") }
            #expect(fault?.description.contains("billing.token") == true, "byte \(index)")
        }
        try await expectRefusal(folder, containing: "remove")
        try folder.overwrite(with: good)
        #expect(try await store.load(client: "billing")?.refreshToken == Secret("R1"))
    }

    @Test("a record cut off anywhere is noticed, an empty file too")
    func truncated() async throws {
        let folder = try await folderWithRecord()
        let good = try folder.bytes()
        let store = folder.store()
        for count in 0..<good.count {
            try folder.overwrite(with: Array(good.prefix(count)))
            #expect(await storeFault { _ = try await store.load(client: "billing") } != nil, "\(count) bytes")
        }
        try await expectRefusal(folder, containing: "restore the file from a backup, or remove it")
    }

    @Test("the wrong key, another format and another client's record are told apart")
    func reasons() async throws {
        let folder = try await folderWithRecord()
        try await expectRefusal(folder, containing: "sealed with another key", key: try FileStoreFolder.key(2))
        let good = try folder.bytes()
        for (format, words) in [(UInt8(0), "an earlier version"), (5, "a later version")] {
            var bytes = good
            bytes[8] = format
            try folder.overwrite(with: bytes)
            try await expectRefusal(folder, containing: words)
        }
        try folder.overwrite(with: good)
        try FileManager.default.copyItem(atPath: folder.path(), toPath: folder.path("other"))
        let renamed = await storeFault { _ = try await folder.store().load(client: "other") }
        #expect(renamed?.description.contains("belongs to something else") == true)
        try folder.overwrite(with: Array("{}".utf8))
        try await expectRefusal(folder, containing: "not a sealed record")
    }

    @Test("a file that is far too large is not read")
    func large() async throws {
        let folder = try await folderWithRecord()
        Disk.truncate(folder.path(), to: 1 << 32)
        let fault = await storeFault { _ = try await folder.store().load(client: "billing") }
        #expect(fault?.description.contains("larger than") == true)
        Disk.truncate(folder.path(), to: 0)
    }

    @Test("a record that would be too large to read is not written")
    func largeRecord() async throws {
        let folder = try await folderWithRecord()
        var record = FileStoreFolder.record(2)
        record.extra = ["x": .string(String(repeating: "x", count: 5 << 20))]
        let fault = await storeFault { try await folder.store().save(record, client: "billing") }
        #expect(fault?.description.contains("larger than") == true)
        #expect(try await folder.store().load(client: "billing")?.revision == 1)
    }

    // MARK: Who may read it

    @Test(
        "a directory or a file that others may use is refused", arguments: [0o001, 0o010, 0o040, 0o004, 0o020, 0o002])
    func modes(extra: Int) async throws {
        let folder = try await folderWithRecord()
        Disk.chmod(folder.path(), 0o600 | extra)
        try await expectRefusal(folder, containing: "`chmod 600` it")
        Disk.chmod(folder.path(), 0o600)
        Disk.chmod(folder.directory, 0o700 | extra)
        try await expectRefusal(folder, containing: "`chmod 700` it")
        let prepared = await storeFault { try await folder.store().prepare() }
        #expect(prepared?.kind == .misconfigured)
        Disk.chmod(folder.directory, 0o700)
        Disk.chmod("\(folder.directory)/billing.lock", 0o600 | extra)
        let fault = await storeFault { _ = try await folder.store().lease(client: "billing") }
        #expect(fault?.description.contains("billing.lock is open to other users") == true)
    }

    @Test("a symbolic link is not followed: not as the directory, the record, or the lock")
    func links() async throws {
        let manager = FileManager.default
        let folder = try await folderWithRecord()
        try manager.moveItem(atPath: folder.path(), toPath: folder.parent.path(of: "real"))
        try manager.createSymbolicLink(atPath: folder.path(), withDestinationPath: folder.parent.path(of: "real"))
        try await expectRefusal(folder, containing: "is a symbolic link")
        try manager.removeItem(atPath: "\(folder.directory)/billing.lock")
        try manager.createSymbolicLink(
            atPath: "\(folder.directory)/billing.lock", withDestinationPath: folder.parent.path(of: "real"))
        #expect(
            await storeFault { _ = try await folder.store().lease(client: "billing") }?.description.contains(
                "is a symbolic link") == true)
        try manager.moveItem(atPath: folder.directory, toPath: folder.parent.path(of: "elsewhere"))
        try manager.createSymbolicLink(
            atPath: folder.directory, withDestinationPath: folder.parent.path(of: "elsewhere"))
        for directory in [folder.directory, folder.directory + "/"] {
            let store = OAuthAccessTokenFileStore(directory: directory, key: folder.key)
            let fault = await storeFault { try await store.prepare() }
            #expect(fault?.description.contains("is a symbolic link") == true)
            #expect(fault?.kind == .misconfigured)
        }
    }

    @Test("a path that is no directory or no file is refused, and nothing hangs")
    func kinds() async throws {
        let folder = try FileStoreFolder()
        try folder.parent.write("x", to: "state")
        #expect(await storeFault { try await folder.store().prepare() }?.kind == .misconfigured)
        try FileManager.default.removeItem(atPath: folder.directory)
        try await folder.store().prepare()
        Disk.makeFIFO(folder.path())
        try await expectRefusal(folder, containing: "is not a regular file")
        let missing = OAuthAccessTokenFileStore(directory: folder.directory + "/a/b", key: folder.key)
        let fault = await storeFault { try await missing.prepare() }
        #expect(fault?.kind == .misconfigured)
        #expect(fault?.description.contains("No such file or directory") == true)
    }

    @Test("a directory or a file of another user is refused", .enabled(if: isRoot, "only root can give files away"))
    func owners() async throws {
        let folder = try await folderWithRecord()
        Disk.chown(folder.path(), to: 12345)
        try await expectRefusal(folder, containing: "belongs to user 12345")
        Disk.chown(folder.path(), to: 0)
        Disk.chown(folder.directory, to: 12345)
        try await expectRefusal(folder, containing: "belongs to user 12345")
    }

    // MARK: Disks

    @Test func `a process that can't save a refresh token keeps its lock until it has`() async throws {
        let folder = try await folderWithRecord()
        let (one, other) = (folder.store(), folder.store(lockPatience: .milliseconds(50)))
        let lease = try #require(try await one.lease(client: "billing"))
        let obstacle = folder.path() + ".new"
        try FileManager.default.createDirectory(atPath: obstacle + "/full", withIntermediateDirectories: true)
        _ = await storeFault { try await one.save(FileStoreFolder.record(2), client: "billing") }
        await lease.release()
        func isBusy(_ error: any Error) -> Bool { (error as? TokenStoreError)?.kind == .busy }
        await #expect { _ = try await other.lease(client: "billing") } throws: { isBusy($0) }
        // The process itself goes on.
        await (try #require(try await one.lease(client: "billing"))).release()
        await #expect { _ = try await other.lease(client: "billing") } throws: { isBusy($0) }
        try FileManager.default.removeItem(atPath: obstacle)
        try await one.save(FileStoreFolder.record(2), client: "billing")
        await (try #require(try await other.lease(client: "billing"))).release()
        #expect(try await other.load(client: "billing")?.revision == 2)
    }

    @Test("a write that fails leaves the old record, and no debris that would fail the next one")
    func failingWrite() async throws {
        let folder = try await folderWithRecord()
        let store = folder.store()
        // A directory with something in it, where the new record would be written, stops root too.
        let obstacle = folder.path() + ".new"
        try FileManager.default.createDirectory(atPath: obstacle + "/full", withIntermediateDirectories: true)
        let fault = await storeFault { try await store.save(FileStoreFolder.record(2), client: "billing") }
        #expect(fault?.description.contains("billing.token.new") == true)
        #expect(try await store.load(client: "billing")?.revision == 1)
        try FileManager.default.removeItem(atPath: obstacle)
        // A half-written file of a killed process is no obstacle.
        try Data("half".utf8).write(to: URL(fileURLWithPath: obstacle))
        try await store.save(FileStoreFolder.record(2), client: "billing")
        #expect(try await store.load(client: "billing")?.revision == 2)
        #expect(!FileManager.default.fileExists(atPath: obstacle))
    }

    @Test(
        "a full disk: a clear error, the old record untouched, and as soon as there is room it is saved",
        .enabled(SmallDisk.unavailable, SmallDisk.isAvailable))
    func full() async throws {
        try await SmallDisk.use { folder in
            let store = folder.store()
            try await store.save(FileStoreFolder.record(), client: "billing")
            let filler = try SmallDisk.fill(folder)
            var record = FileStoreFolder.record(2)
            record.extra = ["x": .string(String(repeating: "x", count: 8000))]
            let fault = await storeFault { try await store.save(record, client: "billing") }
            #expect(fault?.description.contains("No space left on device") == true)
            #expect(fault?.kind == .fault)
            #expect(try await store.load(client: "billing")?.revision == 1)
            #expect(!FileManager.default.fileExists(atPath: folder.path() + ".new"), "it takes no room")
            try SmallDisk.clear(filler)
            try await store.save(record, client: "billing")
            #expect(try await store.load(client: "billing")?.revision == 2)
        }
    }

    @Test(
        "a used refresh token does not stay on a full disk, whether its successor fits or not",
        .enabled(SmallDisk.unavailable, SmallDisk.isAvailable), arguments: [0, 8000])
    func rotatedOnFullDisk(size: Int) async throws {
        try await SmallDisk.use { folder in
            let store = folder.store()
            try await store.save(FileStoreFolder.record(), client: "billing")
            let filler = try SmallDisk.fill(folder)
            var record = FileStoreFolder.record(2, refreshToken: "R2")
            record.extra = ["x": .string(String(repeating: "x", count: size))]
            let fault = await storeFault { try await store.save(record, client: "billing") }
            #expect(fault?.description.contains("No space left on device") == true, "it counts as failed")
            let next = try await folder.store().load(client: "billing")
            #expect(next != nil && next?.refreshToken == (size == 0 ? Secret("R2") : nil))
            #expect(await storeFault { try await store.save(record, client: "billing") } != nil)
            try SmallDisk.clear(filler)
            try await store.save(record, client: "billing")
            #expect(try await folder.store().load(client: "billing")?.refreshToken == Secret("R2"))
        }
    }

    @Test(
        "a disk that can only be read: records are used, and saving is a clear error",
        .enabled(SmallDisk.unavailable, SmallDisk.isAvailable))
    func readOnly() async throws {
        try await SmallDisk.use { folder in
            try await folder.store().save(FileStoreFolder.record(), client: "billing")
            try await ChildProcess.output(of: ["mount", "-o", "remount,ro", folder.directory])
            let store = folder.store()
            try await store.prepare()
            #expect(try await store.load(client: "billing")?.revision == 1)
            let fault = await storeFault { try await store.save(FileStoreFolder.record(2), client: "billing") }
            #expect(fault?.description.contains("Read-only file system") == true)
            #expect(fault?.kind == .fault)
            #expect(try await store.load(client: "billing")?.revision == 1)
            // On a read-only disk no other process can spend a token: there is no reason to wait.
            #expect(await storeFault { _ = try await folder.store().remove(client: "billing") } != nil)
        }
    }
}
