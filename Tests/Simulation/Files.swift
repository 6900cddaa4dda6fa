import FileSystem
import Glibc
import Heimdallr

/// One directory of records on a disk in memory, for all processes of a run.
final class Files: @unchecked Sendable {
    private let directory: String
    private var fullUntil: ContinuousClock.Instant?
    unowned let world: World

    init(_ world: World) {
        self.world = world
        directory = "/dev/shm/heimdallr-simulation-\(getpid())"
        remove()
    }

    func remove() {
        for name in FileSystem.names(in: directory) { unlink("\(directory)/\(name)") }
        rmdir(directory)
    }

    func fill(for duration: Duration) { fullUntil = world.now + duration }

    /// Work on the disk. The kernel refuses each write while the disk is full.
    private func carryOut(_ work: () -> Void) {
        guard let fullUntil, world.now < fullUntil else { return work() }
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        var none = rlimit(rlim_cur: 0, rlim_max: limit.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &none)
        work()
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    }

    func store(of process: Process, _ database: Database) -> any OAuthAccessTokenStore {
        do {
            let key = try TokenStoreKey(Secret("0123456789abcdef0123456789abcdef"))
            return Judged(
                store: OAuthAccessTokenFileStore(
                    directory: directory, key: key,
                    machine: process.machine(
                        isSlow: { database.isSlow }, carryOut: { [self] work in carryOut(work) })), world: world)
        } catch { fatalError("\(error)") }
    }

    /// Reports durable records to the judge.
    private struct Judged: OAuthAccessTokenStore {
        let store: OAuthAccessTokenFileStore
        unowned let world: World

        func load(client: String) async throws -> TokenRecord? { try await store.load(client: client) }

        func save(_ record: TokenRecord, client: String) async throws {
            try await store.save(record, client: client)
            for authority in world.authorities { authority.wasSaved(record) }
        }

        func remove(client: String) async throws { try await store.remove(client: client) }

        func lease(client: String) async throws -> (any TokenStoreLease)? { try await store.lease(client: client) }

        func names(of client: String) async throws -> [String] { try await store.names(of: client) }
    }
}
