import FileSystem
import Glibc
import Heimdallr

/// One directory of records on a disk in memory, for all processes of a run.
final class Files: @unchecked Sendable {
    /// In a folder of this process. Messages name no process, so that a run's text is the same each time.
    private let directory = "records"
    private let folder = "/dev/shm/heimdallr-simulation-\(getpid())"
    private var fullUntil: ContinuousClock.Instant?
    private var records: [String: TokenRecord] = [:]
    unowned let world: World

    init(_ world: World) {
        self.world = world
        remove()
        mkdir(folder, 0o700)
        chdir(folder)
    }

    func remove() {
        for name in FileSystem.names(in: "\(folder)/\(directory)") { unlink("\(folder)/\(directory)/\(name)") }
        for path in ["\(folder)/\(directory)", folder] { rmdir(path) }
    }

    /// Or was a moment ago.
    var isFull: Bool { fullUntil.map { world.now < $0 + .seconds(5) } ?? false }

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

    func store(of process: Process) -> OAuthAccessTokenFileStore {
        do {
            let key = try TokenStoreKey(Secret("0123456789abcdef0123456789abcdef"))
            return OAuthAccessTokenFileStore(
                directory: directory, key: key,
                machine: process.machine(
                    isSlow: { [world] in world.database.isSlow }, carryOut: { [self] work in carryOut(work) }))
        } catch { fatalError("\(error)") }
    }

    /// A save or a removal has returned.
    func wrote(_ record: TokenRecord?, _ client: String, by process: Process) {
        let old = records[client]
        // The store has kept a later record.
        if let record, let old, old.revision > record.revision, old.issuedAt >= record.issuedAt {
            for authority in world.authorities { authority.wasSaved(record) }
            return
        }
        world.wrote(record, over: old, by: process)
        records[client] = record
    }
}
