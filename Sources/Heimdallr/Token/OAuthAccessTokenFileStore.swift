internal import Cryptography
internal import FileSystem
import Synchronization

/// Stores records on disk: one file for each client, sealed with AES-256-GCM, mode 0600, in a directory of mode 0700.
///
/// A record is replaced as a whole and survives a power cut (fsync(2), rename(2)). An unreadable record is never
/// replaced. A lock (flock(2)) admits one process at a time to a record. If the disk does not answer within
/// `diskPatience`, the call throws, and other clients are not delayed. Safe on any thread.
public final class OAuthAccessTokenFileStore: OAuthAccessTokenStore {
    /// Directory of the files.
    public let directory: String
    let key: SealingKey
    let machine: FileStoreMachine
    private let lockPatience: Duration
    private let diskPatience: Duration
    private let clients = Mutex<[String: FileStoreClient]>([:])
    private let use = Mutex(Use())

    private struct Use {
        /// Lock that all proxies on the directory share. `store move` takes it exclusively.
        var lock: FileLock?
        /// Whether the note of a move is ignored.
        var isMoving = false
    }

    /// Largest size of a record. A larger record is neither written nor read.
    static let maxRecordBytes = 4 << 20

    /// Makes a store. Opens no file yet.
    /// - Parameters:
    ///   - directory: created if it is missing. Its parent directory must exist.
    ///   - key: the key that seals the records.
    ///   - lockPatience: longest wait for another process that holds the same client's record.
    ///   - diskPatience: longest time for one operation on the disk.
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

    /// Creates and checks the directory, to find a fault at the start. Blocks `store move` while this object lives.
    /// - Throws: `TokenStoreError`, also if the records were moved. `.misconfigured` means that waiting does not help.
    public func prepare() async throws {
        try await onDisk(FileStoreClient("prepare", on: machine)) { [self] folder in
            // Without a lock the store still works: on a read-only disk, `store move` is impossible too.
            let lock = try? folder.tryLock(Self.useName, isShared: true)
            use.withLock { $0.lock = lock }
            if let location = try Self.newLocation(in: folder) {
                throw MovedStore.refusal(self.location, movedTo: location)
            }
        }
    }

    /// Throws the errors of `prepare`, and for a full disk, but creates nothing.
    package static func check(directory: String) throws(TokenStoreError) {
        let location: String?
        do throws(FileSystem.Fault) {
            try PrivateDirectory.check(path: directory)
            location = FileSystem.exists(directory) ? try newLocation(in: PrivateDirectory(path: directory)) : nil
        } catch {
            throw TokenStoreError(error)
        }
        if let location { throw MovedStore.refusal("the files in \(directory)", movedTo: location) }
        guard !FileSystem.isFull(directory) else {
            throw TokenStoreError(
                "the token store: the disk of \(directory) is full", advice: "free space there, or name another folder",
                kind: .fault)
        }
    }

    // MARK: The store

    public func load(client name: String) async throws -> TokenRecord? {
        let client = try client(name)
        return try await onDisk(client) { [self] in try read(client, in: $0)?.record(machine: machine) }
    }

    public func save(_ record: TokenRecord, client name: String) async throws {
        let client = try client(name)
        // Time of the first attempt to save this record: a retry must not make the record look newer.
        let stamp = client.stamp(for: record)
        if let lock = client.lock {
            do { try await write(StoredRecord(record, stamp), client, lock, underLease: true) } catch {
                if record.refreshToken != nil { client.keepForUnsaved(lock) }
                throw error
            }
            client.keepForUnsaved(nil)
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
            // An empty record tells other processes to drop the tokens. If it can't be written, removes the file.
            do { try empty(client, in: folder) } catch { try folder.remove(client.recordName) }
            withExtendedLifetime(lock) {}
        }
        client.keepForUnsaved(nil)
    }

    public func lease(client name: String) async throws -> (any TokenStoreLease)? {
        let client = try client(name)
        if let lock = client.unsavedLock { return FileStoreLease(client, lock) }
        return FileStoreLease(client, try await lock(client))
    }

    public func names(of client: String) async throws -> [String] {
        guard let prefix = FileStoreClient.file(for: client) else { return [] }
        return try await self.client(client).perform(within: diskPatience) { [self] in
            let files = FileSystem.names(in: directory).filter { $0.hasPrefix(prefix) && $0.hasSuffix(".token") }
            let names = files.map { String($0.dropLast(6)) }.filter { RecordName.client(of: $0) == prefix }
                .map { client + $0.suffix(17) }
            guard !names.isEmpty else { return [] }
            let folder = try PrivateDirectory(path: directory)
            return names.filter { (try? read(FileStoreClient($0), in: folder)?.record.holdsAnything) ?? true }
        }
    }

    // MARK: Disk operations

    /// Runs work in the directory. Creates the directory if it is missing.
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

    /// Polls for the lock, so that no thread waits inside the kernel and a cancelled task ends.
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
                    "another process has held \(directory)/\(client.lockName) for more than \(lockPatience): "
                        + "`lslocks` shows that process",
                    kind: .busy)
            }
            // Random pauses, so that two processes do not poll in step.
            try await clock.sleep(clock.now() + pause * (0.5 + clock.random() / 2))
            pause = min(pause * 2, .milliseconds(100))
        }
    }

    private func write(
        _ new: StoredRecord, _ client: FileStoreClient, _ lock: FileLock, underLease: Bool
    ) async throws {
        try await onDisk(client) { [self] folder in
            var new = new
            let old = try read(client, in: folder)
            if let old, old.record.revision > new.record.revision {
                // With a lease, the new record is the later one whatever its revision. Otherwise `issuedAt` decides.
                guard underLease || old.record.issuedAt < new.record.issuedAt else { return }
                new.record.revision = old.record.revision + 1
            }
            let sealed = try new.seal(client: client.name, key: key)
            guard sealed.count <= Self.maxRecordBytes else {
                throw TokenStoreError("the record of \(client.name) is larger than \(Self.maxRecordBytes) bytes")
            }
            do throws(FileSystem.Fault) { try folder.replace(client.recordName, with: sealed) } catch {
                guard let old, error.isLackOfSpace else { throw error }
                var fault = TokenStoreError(error)
                fault.hasRecord = (try? retire(old, for: new, sealed, client, in: folder)) ?? false
                throw fault
            }
            // The work may outlive its caller. Until the work ends, the lock keeps other processes from writing.
            withExtendedLifetime(lock) {}
        }
    }

    /// Removes a refresh token that is used up from the record of a full disk, so that no later process presents it. If
    /// the new record fits into the old file, it takes its place, but the save still counts as failed and is repeated:
    /// writing over a file is not safe from power cuts. Otherwise the old record loses its tokens.
    /// - Returns: whether the new record, or its refresh token, is in the file.
    private func retire(
        _ old: StoredRecord, for new: StoredRecord, _ sealed: [UInt8], _ client: FileStoreClient,
        in folder: PrivateDirectory
    ) throws -> Bool {
        guard let spent = old.record.refreshToken, spent != new.record.refreshToken else {
            return old.record.refreshToken == new.record.refreshToken
        }
        do {
            try folder.overwrite(client.recordName, with: sealed)
            return true
        } catch {
            var rest = old
            (rest.record.accessToken, rest.record.refreshToken) = (nil, nil)
            try folder.overwrite(client.recordName, with: rest.seal(client: client.name, key: key))
            return false
        }
    }

    /// Replaces the record by a record without tokens.
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
        case .key: "configure the key that sealed it, or remove the file to start afresh"
        case .format: "run a version that can read it, or remove the file to start afresh"
        case .foreign, .damaged: "restore the file from a backup, or remove it to start afresh"
        }
    }
}

extension OAuthAccessTokenFileStore: MovableTokenStore {
    /// No file of a client has this name or `useName`: record names end with a dash and sixteen digits.
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

    private static func newLocation(in folder: PrivateDirectory) throws(FileSystem.Fault) -> String? {
        try folder.read(noteName, limit: MovedStore.longestNote).map { String(decoding: $0, as: UTF8.self) }
    }
}
