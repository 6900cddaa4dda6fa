// A process of its own for tests of the store in PostgreSQL: takes a lease, reads, writes a record, and says what came of
// it. `HEIMDALLR_FAULT_POINT` says where it ends or stands still.
//
//     CONNECTION=… PostgresContender SPACE CLIENT REFRESH-TOKEN
import Glibc
import Heimdallr
import PostgresStore

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
            let store = try OAuthAccessTokenPostgresStore(settings)
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
    }

    /// One write: a line is whole or not there. write(2).
    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}
