// A process of its own for tests of the store in PostgreSQL: takes a lease, reads, writes a record, and says what came of
// it. `FAULT=STEP:kill` or `FAULT=STEP:stop` sends it SIGKILL or SIGSTOP at a step of the engine.
//
//     CONNECTION=… PostgresContender SPACE CLIENT REFRESH-TOKEN
import Glibc
import Heimdallr
import PostgresStore
import SharedStore

@main
enum PostgresContender {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let connection = unsafe getenv("CONNECTION") else { return say("usage") }
        var settings = PostgresStoreSettings(
            connection: Secret(unsafe String(cString: connection)), space: arguments[1],
            keys: [try TokenStoreKey(Secret([UInt8](repeating: 1, count: 32)))])
        settings.leaseTime = .seconds(1)
        settings.patience = .seconds(5)
        settings.answerTime = .seconds(2)
        do {
            let store = try OAuthAccessTokenPostgresStore(settings, clock: .system) { FaultyEngine(engine: $0) }
            try await store.prepare()
            let lease = try await store.lease(client: arguments[2])
            let before = try await store.load(client: arguments[2])
            say("leased \(before?.revision ?? 0)")
            let record = TokenRecord(
                revision: (before?.revision ?? 0) + 1, accessToken: nil, issuedAt: 0, expiresAt: 0,
                refreshToken: Secret(arguments[3]))
            try await store.save(record, client: arguments[2])
            await lease?.release()
            say("saved")
        } catch let error as TokenStoreError {
            say("failed \(error.kind): \(error)")
        }
        // exit(3) would clean up OpenSSL under threads that still run.
        _exit(0)
    }

    /// One write: a line is whole or not there. write(2).
    static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}

/// The engine, with one fault at a step: `lease-got`, `before-update` or `after-commit`.
struct FaultyEngine: SharedRecordEngine {
    let engine: any SharedRecordEngine
    private let fault = unsafe getenv("FAULT").map { unsafe String(cString: $0).split(separator: ":") } ?? []

    init(engine: any SharedRecordEngine) { self.engine = engine }

    private func reach(_ step: String) {
        guard fault.count == 2, fault[0] == step else { return }
        PostgresContender.say("fault \(step)")
        kill(getpid(), fault[1] == "kill" ? SIGKILL : SIGSTOP)
        // Another thread may take the signal: this one goes no further before it.
        usleep(50_000)
    }

    func read(client: String) async throws -> SharedRow { try await engine.read(client: client) }

    func mark(client: String, revision: UInt64?, owner: String, for time: Duration) async throws -> SharedRow {
        let row = try await engine.mark(client: client, revision: revision, owner: owner, for: time)
        if row.mark == .ours { reach("lease-got") }
        return row
    }

    func unmark(client: String, owner: String) async throws {
        try await engine.unmark(client: client, owner: owner)
    }

    func swap(client: String, revision: UInt64, for record: TokenRecord?) async throws -> UInt64? {
        reach("before-update")
        let next = try await engine.swap(client: client, revision: revision, for: record)
        reach("after-commit")
        return next
    }

    func changes(client: String) -> AsyncStream<Void>? { engine.changes(client: client) }
}
