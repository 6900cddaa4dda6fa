import Heimdallr

/// A client's row as it was read.
struct TokenRow: Sendable {
    /// Grows with every change.
    var revision: UInt64
    /// `nil`: there is nothing: never was, or somebody has logged out.
    var sealed: [UInt8]?
    /// How long ago it was written, by the database's clock, in microseconds; less than 0 where that was set back.
    var since: Int64
    var reading: ServerReading

    /// The record with its times reckoned by this process's clocks. The database's clock has been compared with nothing
    /// but itself, and what passed on the way counts, so that no token is older than it seems. The access token is left
    /// out when it has expired, or when nobody can tell.
    /// - Returns: `nil`: there never was one. A row that was emptied is a record without tokens.
    /// - Throws: `TokenStoreError` of the kind `.unreadable`
    func record(client: String, _ sealing: RowSealing, clock: HeimdallrClock) throws(TokenStoreError) -> TokenRecord? {
        let (now, wall) = (clock.now(), clock.wallClock())
        guard let sealed else {
            guard revision > 0 else { return nil }
            return TokenRecord(
                revision: revision, accessToken: nil, issuedAt: wall, expiresAt: wall, refreshToken: nil)
        }
        let opened = try sealing.open(sealed, client: client, revision: revision)
        var record = opened.stored.record
        let passed = Duration.microseconds(max(0, since)) + reading.asked.duration(to: now)
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
        // A clock may be corrected by a moment; set back further, it tells nothing.
        guard record.accessToken != nil, since > -1_000_000, age < life else {
            record.accessToken = nil
            return record
        }
        record.issuedAt = wall - age.components.seconds - 1
        record.expiresAt = max(record.issuedAt, record.issuedAt + life.components.seconds)
        record.reckoned = .init(issuedAt: now - age, expiresAt: now - age + life)
        return record
    }
}

/// What the database's clock said, and when.
struct ServerReading: Sendable {
    /// In microseconds since 1970, as the database has it.
    var server: Int64
    /// Before it was asked.
    var asked: ContinuousClock.Instant
    /// After it had answered.
    var heard: ContinuousClock.Instant

    /// What the database's clock says now, or a moment less: rather too old is what is written with it than too young.
    func server(at now: ContinuousClock.Instant) -> Int64 {
        let (sum, overflow) = server.addingReportingOverflow(max(0, heard.duration(to: now).microseconds))
        return overflow ? server : sum
    }
}
