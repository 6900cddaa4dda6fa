package import Cryptography
internal import FileSystem
import Synchronization

/// Keeps records on disk: one file for each client, sealed with AES-256-GCM, mode 0600, in a directory of mode 0700.
///
/// A record is replaced whole and survives a power cut (fsync(2), rename(2)). An unreadable record is never replaced. A
/// lock (flock(2)) lets one process at a time work with a record. A disk that does not answer within `diskPatience` is an
/// error and delays no other client. Safe on any thread.
public final class OAuthAccessTokenFileStore: OAuthAccessTokenStore {
    /// Where the files are.
    public let directory: String
    let key: SealingKey
    let machine: FileStoreMachine
    private let lockPatience: Duration
    private let diskPatience: Duration
    private let clients = Mutex<[String: FileStoreClient]>([:])
    private let use = Mutex(Use())

    private struct Use {
        /// Shared by all processes on the directory, but for `store move`.
        var lock: FileLock?
        /// A note of a move is ignored.
        var isMoving = false
    }

    /// A record of more than this is not written: it would not be read either.
    static let maxRecordBytes = 4 << 20

    /// Touches no file yet.
    /// - Parameters:
    ///   - directory: made when it is missing; the directory above it must exist.
    ///   - key: seals the records; another key can't read them.
    ///   - lockPatience: how long to wait for another process that works with the same client's record.
    ///   - diskPatience: how long one operation on the disk may take.
    public convenience init(
        directory: String, key: TokenStoreKey, lockPatience: Duration = .seconds(30),
        diskPatience: Duration = .seconds(10)
    ) {
        self.init(
            directory: directory, key: key, lockPatience: lockPatience, diskPatience: diskPatience, machine: .system)
    }

    package init(
        directory: String, key: TokenStoreKey, lockPatience: Duration = .seconds(30),
        diskPatience: Duration = .seconds(10), machine: FileStoreMachine
    ) {
        self.directory = directory
        self.key = key.sealing
        self.lockPatience = lockPatience
        self.diskPatience = diskPatience
        self.machine = machine
    }

    /// Makes and checks the directory, so that a fault shows at the start. Keeps `store move` away while this object lives.
    /// - Throws: `TokenStoreError`; its kind is `.misconfigured` where waiting does not help.
    public func prepare() async throws {
        try await onDisk(FileStoreClient("prepare", on: machine)) { [self] folder in
            // On a disk that can only be read there is nothing to move.
            let lock = try? folder.tryLock(Self.useName, isShared: true)
            use.withLock { $0.lock = lock }
            if let location = try Self.newLocation(in: folder) {
                throw MovedStore.refusal(self.location, movedTo: location)
            }
        }
    }

    /// Finds what `prepare` would throw, and makes nothing.
    package static func check(directory: String) throws(TokenStoreError) {
        let location: String?
        do throws(CryptographyError) {
            try PrivateDirectory.check(path: directory)
            location = FileSystem.exists(directory) ? try newLocation(in: PrivateDirectory(path: directory)) : nil
        } catch {
            throw TokenStoreError(error)
        }
        if let location { throw MovedStore.refusal("the files in \(directory)", movedTo: location) }
    }

    // MARK: The store

    public func load(client name: String) async throws -> TokenRecord? {
        let client = try client(name)
        return try await onDisk(client) { [self] in try read(client, in: $0)?.record(machine: machine) }
    }

    public func save(_ record: TokenRecord, client name: String) async throws {
        let client = try client(name)
        // When the record is younger than a moment: a retry must not make it look younger.
        let stamp = client.stamp(for: record)
        if let lock = client.lock {
            do { try await write(StoredRecord(record, stamp), client, lock, underLease: true) } catch {
                if record.refreshToken != nil { client.owes(under: lock) }
                throw error
            }
            client.owes(under: nil)
        } else {
            let lock = try await lock(client)
            try await write(StoredRecord(record, stamp), client, lock, underLease: false)
        }
    }

    public func remove(client name: String) async throws {
        let client = try client(name)
        let lock: FileLock
        if let held = client.lock { lock = held } else { lock = try await self.lock(client) }
        try await onDisk(client) { [self] folder in
            // An empty record tells the processes that still have its tokens. A full disk has no room for one.
            do { try empty(client, in: folder) } catch { try folder.remove(client.recordName) }
            withExtendedLifetime(lock) {}
        }
        client.owes(under: nil)
    }

    public func lease(client name: String) async throws -> (any TokenStoreLease)? {
        let client = try client(name)
        if let owed = client.owed { return FileStoreLease(client, owed) }
        return FileStoreLease(client, try await lock(client))
    }

    public func names(of client: String) async throws -> [String] {
        guard let prefix = FileStoreClient.file(for: client) else { return [] }
        return try await self.client(client).perform(within: diskPatience) { [self] in
            let names = FileSystem.names(in: directory).filter { $0.hasSuffix(".token") }.map { String($0.dropLast(6)) }
                .filter { RecordName.client(of: $0) == prefix }.map { client + $0.suffix(17) }
            guard !names.isEmpty else { return [] }
            let folder = try PrivateDirectory(path: directory)
            return names.filter { (try? read(FileStoreClient($0), in: folder)?.record.holdsAnything) ?? true }
        }
    }

    // MARK: How

    /// Runs work in the directory, which is made when it is missing.
    private func onDisk<Value: Sendable>(
        _ client: FileStoreClient, _ work: @escaping @Sendable (PrivateDirectory) throws -> Value
    ) async throws -> Value {
        try await client.perform(within: diskPatience) { [directory] in try work(PrivateDirectory(path: directory)) }
    }

    private func client(_ name: String) throws(TokenStoreError) -> FileStoreClient {
        try clients.withLock { clients throws(TokenStoreError) in
            if let client = clients[name] { return client }
            let client = try FileStoreClient(name, on: machine)
            clients[name] = client
            return client
        }
    }

    /// Asks again and again, so that no thread waits inside the kernel and a task that is cancelled leaves.
    private func lock(_ client: FileStoreClient) async throws -> FileLock {
        let clock = machine.clock
        let deadline = clock.now() + lockPatience
        var pause = Duration.milliseconds(4)
        while true {
            let lock = try await onDisk(client) { [self] folder in
                let lock = try folder.tryLock(client.lockName)
                if !use.withLock({ $0.isMoving }), let location = try Self.newLocation(in: folder) {
                    throw MovedStore.late(self.location, movedTo: location)
                }
                return lock
            }
            if let lock { return lock }
            guard clock.now() < deadline else {
                throw TokenStoreError(
                    "another process holds \(directory)/\(client.lockName) for more than \(lockPatience): "
                        + "`lslocks` shows which",
                    kind: .busy)
            }
            // Two that wait for each other's end must not step in time.
            try await clock.sleep(clock.now() + pause * (0.5 + clock.random() / 2))
            pause = min(pause * 2, .milliseconds(100))
        }
    }

    private func write(
        _ new: StoredRecord, _ client: FileStoreClient, _ lock: FileLock, underLease: Bool
    ) async throws {
        try await onDisk(client) { [self] folder in
            var new = new
            if let old = try read(client, in: folder), old.record.revision > new.record.revision {
                // Under a lease this record is the later one. A later retry has no lease: another process's record then stays.
                guard underLease || old.record.issuedAt < new.record.issuedAt else { return }
                new.record.revision = old.record.revision + 1
            }
            let sealed = try new.seal(client: client.name, key: key)
            guard sealed.count <= Self.maxRecordBytes else {
                throw TokenStoreError("the record of \(client.name) is larger than \(Self.maxRecordBytes) bytes")
            }
            try folder.replace(client.recordName, with: sealed)
            // The work may outlive its caller. Meanwhile no other process may write.
            withExtendedLifetime(lock) {}
        }
    }

    /// Replaces the record by one without tokens.
    private func empty(_ client: FileStoreClient, in folder: PrivateDirectory) throws {
        guard let old = try read(client, in: folder)?.record else { return }
        let stamp = machine.stamp()
        let record = TokenRecord(
            revision: old.revision &+ 1, accessToken: nil, issuedAt: stamp.wall, expiresAt: stamp.wall,
            refreshToken: nil)
        try folder.replace(client.recordName, with: StoredRecord(record, stamp).seal(client: client.name, key: key))
    }

    private func read(_ client: FileStoreClient, in folder: PrivateDirectory) throws -> StoredRecord? {
        guard let sealed = try folder.read(client.recordName, limit: Self.maxRecordBytes) else { return nil }
        do {
            return try StoredRecord(sealed: sealed, client: client.name, key: key)
        } catch CryptographyError.seal(let fault) {
            throw TokenStoreError(
                "\(directory)/\(client.recordName) \(fault): \(Self.advice(on: fault))", kind: .unreadable)
        }
    }

    private static func advice(on fault: SealFault) -> String {
        switch fault {
        case .key: "give back the key that it was sealed with, or remove the file to start afresh"
        case .format: "run a version that reads it, or remove the file to start afresh"
        case .foreign, .damaged: "restore it, or remove it to start afresh"
        }
    }
}

extension OAuthAccessTokenFileStore: MovableTokenStore {
    /// No client has a file of this name: those have a dash and sixteen digits.
    private static let noteName = "moved-to.txt"
    private static let useName = "proxies.lock"

    package var location: String { "the files in \(directory)" }

    package func prepareMove(alone: Bool) async throws {
        try await onDisk(FileStoreClient("move", on: machine)) { [self] folder in
            let lock = try folder.tryLock(Self.useName, isShared: !alone)
            if lock == nil { throw MovedStore.inUse(location) }
            use.withLock { $0 = Use(lock: lock, isMoving: true) }
        }
    }

    package func newLocation() async throws -> String? {
        try await onDisk(FileStoreClient("move", on: machine)) { try Self.newLocation(in: $0) }
    }

    package func setNewLocation(_ location: String?) async throws {
        try await onDisk(FileStoreClient("move", on: machine)) { folder in
            guard let location else { return try folder.remove(Self.noteName) }
            try folder.replace(Self.noteName, with: Array(location.utf8.prefix(MovedStore.longestNote)))
        }
    }

    private static func newLocation(in folder: PrivateDirectory) throws(CryptographyError) -> String? {
        try folder.read(noteName, limit: MovedStore.longestNote).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// The key that records are sealed with: AES-256-GCM. Prints as `<redacted>`.
public struct TokenStoreKey: Sendable, Redacted {
    /// Wiped from memory with its last copy.
    package let sealing: SealingKey

    /// - Parameter text: 32 bytes, or base64 of 32 bytes; `heimdallr-proxy keygen` makes one.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured` when it is anything else.
    public init(_ text: Secret) throws(TokenStoreError) { try self.init(text.bytes, from: "the key") }

    /// Reads it from a file. Blocks the thread for as long as the disk takes.
    /// - Parameter path: a file that holds 32 bytes, or base64 of 32 bytes.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured` when the file can't be read or holds anything else.
    public init(file path: String) throws(TokenStoreError) {
        let bytes: SecretBytes
        do throws(CryptographyError) {
            bytes = try SecretFile.read(path: path, trimsLineEnd: false)
        } catch { throw TokenStoreError("the token store's key: \(error)", kind: .misconfigured) }
        try self.init(bytes, from: path)
    }

    private init(_ bytes: SecretBytes, from location: String) throws(TokenStoreError) {
        do throws(CryptographyError) {
            sealing = try SealingKey(text: bytes)
        } catch {
            throw TokenStoreError(
                "the token store's key in \(location) is of no use: \(error); write 32 bytes, raw or base64, as "
                    + "`heimdallr-proxy keygen` makes them",
                kind: .misconfigured)
        }
    }
}
