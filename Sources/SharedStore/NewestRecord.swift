import Heimdallr
import Synchronization

/// The newest record of a client that this process knows, and a time at which it was made already.
struct NewestRecord {
    var revision: UInt64
    var record: TokenRecord?
    var madeBy: ContinuousClock.Instant
}

// A database can lose the last commits: a standby without them is promoted. Then a row has a lower revision than a
// process has seen, and a refresh token that is used up.
extension MarkedTokenStore {
    /// Reads the row. Restores a newer record that the database has lost.
    func read(_ client: String) async throws -> SharedRow {
        for _ in 0..<5 {
            let asked = clock.now()
            let row = try await engine.read(client: client)
            if try await isNewest(row, client, asked) { return row }
        }
        throw TokenStoreError(
            "the token store does not keep the record of \(RecordName.owner(of: client))", kind: .unreachable)
    }

    /// Notes the row's record, or writes a newer one over it. Of two records, the one that was made later is the newer:
    /// after the loss another process may have begun anew, for example by a sign-in. A record that is newer and has the
    /// lower revision gets a higher one, so that the other processes take it over.
    /// - Parameter asked: time before the reading.
    /// - Returns: `false`: the row had an older record, and has to be read again.
    func isNewest(_ row: SharedRow, _ client: String, _ asked: ContinuousClock.Instant) async throws -> Bool {
        guard case .success(let record) = row.record else { return true }
        let heard = clock.now()
        let newest = clients.withLock { clients -> NewestRecord? in
            if let newest = clients[client]?.newest, newest.revision > row.revision { return newest }
            let age = row.age ?? .zero
            clients[client, default: ClientState()].newest = NewestRecord(
                revision: row.revision, record: record, madeBy: heard - age)
            return nil
        }
        guard let newest else { return true }
        var wanted = newest.record
        if let age = row.age, let record, asked - age > newest.madeBy + Self.tolerance {
            wanted = record
            wanted?.revision = newest.revision + 1
        } else {
            wanted?.revision = newest.revision
        }
        // If another process has changed the row, the next reading shows its record.
        _ = try await engine.swap(client: client, revision: row.revision, for: wanted)
        return false
    }

    /// Error of the times of two records that were made of one token.
    private static let tolerance = Duration.seconds(1)

    /// Notes a record that this process has written.
    func note(_ revision: UInt64, _ record: TokenRecord?, _ client: String) {
        let now = clock.now()
        var empty = TokenRecord(revision: revision, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: nil)
        empty.moments = .init(issuedAt: now, expiresAt: now)
        let newest = NewestRecord(revision: revision, record: record ?? empty, madeBy: now)
        clients.withLock { clients in
            if clients[client]?.newest?.revision ?? 0 <= revision {
                clients[client, default: ClientState()].newest = newest
            }
        }
    }
}
