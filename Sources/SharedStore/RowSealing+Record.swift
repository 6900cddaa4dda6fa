import Heimdallr

extension RowSealing {
    /// Returns the record of a row, with times on this process's clocks. The age of a token is measured by the
    /// database's clock. The duration of the query is added, so that no token seems younger than it is. Leaves out an
    /// access token that has expired, or whose age is unknown. `moments.issuedAt` is the time at which the record was
    /// made, also without an access token.
    /// - Parameters:
    ///   - sealed: content of the row; `nil` for an empty row: there never was a record, or it was removed.
    ///   - rowAge: age of the row in microseconds, by the database's clock; negative if that clock was set back.
    /// - Returns: `nil` if there never was a record. A removed record has no tokens.
    /// - Throws: `TokenStoreError` of the kind `.unreadable`
    package func record(
        client: String, revision: UInt64, sealed: [UInt8]?, rowAge: Int64, reading: ServerReading, clock: HeimdallrClock
    ) throws(TokenStoreError) -> TokenRecord? {
        let (now, wall) = (clock.now(), clock.wallClock())
        guard let sealed else {
            guard revision > 0 else { return nil }
            var record = TokenRecord(
                revision: revision, accessToken: nil, issuedAt: wall, expiresAt: wall, refreshToken: nil)
            let made = reading.asked - .microseconds(max(0, rowAge))
            record.moments = .init(issuedAt: made, expiresAt: made, isFromStore: true)
            return record
        }
        let opened = try open(sealed, client: client, revision: revision)
        var record = opened.stored.record
        let passed = Duration.microseconds(max(0, rowAge)) + reading.asked.duration(to: now)
        let seconds = passed.components.seconds + 1
        if let life = record.refreshTokenLife,
            case (let written, false) = wall.subtractingReportingOverflow(seconds),
            case (let shift, false) = written.subtractingReportingOverflow(opened.stored.stamp.wall),
            case (let issued, false) = life.issuedAt.addingReportingOverflow(shift),
            case (let expires, false) = life.expiresAt.addingReportingOverflow(shift)
        {
            record.refreshTokenLife = .init(issuedAt: issued, expiresAt: expires)
        }
        let age = Duration.milliseconds(opened.age) + passed
        let life = Duration.milliseconds(opened.life)
        record.issuedAt = wall
        record.expiresAt = wall
        // The database's clock may be set back by up to a second. After a larger step, the age is unknown.
        if rowAge > -1_000_000 {
            record.moments = .init(issuedAt: now - age, expiresAt: now - age + life, isFromStore: true)
        }
        guard record.accessToken != nil, rowAge > -1_000_000, age < life else {
            record.accessToken = nil
            return record
        }
        record.issuedAt = wall - age.components.seconds - 1
        record.expiresAt = max(record.issuedAt, record.issuedAt + life.components.seconds)
        return record
    }
}

/// A reading of the database's clock.
package struct ServerReading: Sendable {
    /// Microseconds since 1970 by the database's clock.
    var server: Int64
    /// Local time before the query.
    package var asked: ContinuousClock.Instant
    /// Local time after the answer.
    package var heard: ContinuousClock.Instant

    package init(server: Int64, asked: ContinuousClock.Instant, heard: ContinuousClock.Instant) {
        self.server = server
        self.asked = asked
        self.heard = heard
    }

    /// Returns a lower bound of the database's time at `now`, so that a record never seems younger than it is.
    package func server(at now: ContinuousClock.Instant) -> Int64 {
        let (sum, overflow) = server.addingReportingOverflow(max(0, heard.duration(to: now).microseconds))
        return overflow ? server : sum
    }

    /// Returns an upper bound of the database's time at `now`: the reading may be as old as the query was long.
    package func latestServer(at now: ContinuousClock.Instant) -> Int64 {
        let (sum, overflow) = server.addingReportingOverflow(max(0, asked.duration(to: now).microseconds))
        return overflow ? server : sum
    }
}

extension Duration {
    /// Microseconds, rounded towards zero.
    package var microseconds: Int64 {
        let (seconds, attoseconds) = components
        guard abs(seconds) < 9_000_000_000_000 else { return seconds < 0 ? .min / 2 : .max / 2 }
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
