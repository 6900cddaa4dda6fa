import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Heimdallr

/// A folder for a file store and what a test needs around it.
struct FileStoreFolder {
    /// The folder that the store's directory is in.
    let parent: TemporaryDirectory
    let keyFile: String
    let key: TokenStoreKey

    init() throws {
        parent = try TemporaryDirectory()
        keyFile = try parent.write([UInt8](repeating: 1, count: 32), to: "key")
        key = try TokenStoreKey(file: keyFile)
    }

    /// The store's directory; made by the store.
    var directory: String { parent.path(of: "state") }

    static func key(_ byte: UInt8) throws -> TokenStoreKey {
        try TokenStoreKey(Secret([UInt8](repeating: byte, count: 32)))
    }

    /// The store of another process, with its own locks.
    func store(
        key: TokenStoreKey? = nil, lockPatience: Duration = .seconds(30), machine: FileStoreMachine? = nil
    ) -> OAuthAccessTokenFileStore {
        OAuthAccessTokenFileStore(
            directory: directory, key: key ?? self.key, lockPatience: lockPatience,
            machine: machine ?? HeldClock().machine)
    }

    /// The record's file, named after the client alone or after its `RecordName`.
    func path(_ client: String = "billing") -> String {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        let file = files.first { $0.hasSuffix(".token") && RecordName.client(of: String($0.dropLast(6))) == client }
        return "\(directory)/\(file ?? "\(client).token")"
    }

    func bytes(_ client: String = "billing") throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path(client))))
    }

    /// Changes the file as a permitted user could.
    func overwrite(_ client: String = "billing", with bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path(client)))
        Disk.chmod(path(client), 0o600)
    }

    static func record(_ revision: UInt64 = 1, refreshToken: String? = "R1") -> TokenRecord {
        TokenRecord(
            revision: revision, accessToken: Secret("T\(revision)"), issuedAt: HeldClock.begin,
            expiresAt: HeldClock.begin + 3600, refreshToken: refreshToken.map { Secret($0) })
    }
}

/// Both clocks of a file store in a test's hands.
final class HeldClock: Sendable {
    static let begin: Int64 = 1_700_000_000

    private let now: Mutex<TimeStamp>

    init(boot: [UInt8]? = Array("this".utf8), isSynchronized: Bool = true) {
        now = Mutex(TimeStamp(wall: Self.begin, sinceBoot: 5000, boot: boot, isSynchronized: isSynchronized))
    }

    var machine: FileStoreMachine { FileStoreMachine { self.now.withLock { $0 } } }
    var wall: Int64 { now.withLock { $0.wall } }

    /// Time passes.
    func pass(_ seconds: Int64) {
        now.withLock {
            $0.wall += seconds
            $0.sinceBoot += seconds
        }
    }

    func jumpWallClock(by seconds: Int64) { now.withLock { $0.wall += seconds } }

    /// The machine is started anew, and was off for so long.
    func reboot(after seconds: Int64, isSynchronized: Bool = true) {
        now.withLock {
            $0 = TimeStamp(
                wall: $0.wall + seconds, sinceBoot: 20, boot: Array("next".utf8), isSynchronized: isSynchronized)
        }
    }
}

/// The error of a store that must fail, as a sentence.
func storeFault(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async -> TokenStoreError? {
    await #expect(throws: TokenStoreError.self, sourceLocation: sourceLocation) { try await body() }
}

/// Operations on files by an operator.
enum Disk {
    static func chmod(_ path: String, _ mode: Int) { note(unsafe Glibc.chmod(path, mode_t(mode)), path) }
    static func chown(_ path: String, to user: UInt32) { note(unsafe Glibc.chown(path, user, user), path) }
    static func truncate(_ path: String, to size: Int) { note(unsafe Glibc.truncate(path, size), path) }
    static func makeFIFO(_ path: String) { note(unsafe mkfifo(path, 0o600), path) }

    private static func note(_ code: Int32, _ path: String) {
        if code != 0 { Issue.record("error \(errno) at \(path)") }
    }
}

/// A file system of 64 KiB in memory, where the test may make one.
enum SmallDisk {
    static let unavailable: Comment = "needs the right to mount a tmpfs"

    static func isAvailable() async -> Bool {
        guard geteuid() == 0 else { return false }
        let answer = try? await use { _ in true }
        return answer ?? false
    }

    /// The store's directory is the disk's root.
    static func use<Result>(_ body: (FileStoreFolder) async throws -> Result) async throws -> Result {
        let folder = try FileStoreFolder()
        try FileManager.default.createDirectory(atPath: folder.directory, withIntermediateDirectories: false)
        try await ChildProcess.output(of: [
            "mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", folder.directory,
        ])
        let result: Swift.Result<Result, any Error>
        do { result = .success(try await body(folder)) } catch { result = .failure(error) }
        try await ChildProcess.output(of: ["umount", "--lazy", folder.directory])
        return try result.get()
    }

    /// Takes all the room there is.
    static func fill(_ folder: FileStoreFolder) throws -> String {
        let filler = folder.directory + "/filler"
        guard FileManager.default.createFile(atPath: filler, contents: nil),
            let file = FileHandle(forWritingAtPath: filler)
        else { throw TestFailure("can't make \(filler)") }
        defer { try? file.close() }
        while (try? file.write(contentsOf: Data(count: 4096))) != nil {}
        return filler
    }

    /// Gives the room back at once, even if a child that another test is starting has the file open.
    static func clear(_ filler: String) throws {
        guard unsafe truncate(filler, 0) == 0 else { throw TestFailure("can't truncate \(filler): \(errno)") }
        try FileManager.default.removeItem(atPath: filler)
    }
}
