/// SQL statements. Each is one transaction and is not prepared, so a pooler may give each transaction another
/// connection. Names include the schema, so `search_path` has no effect.
enum Statements {
    /// Version of the tables.
    static let version: Int64 = 2

    private static let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    private static let left = "(extract(epoch FROM token.held_until - clock_timestamp()) * 1000000)::bigint"
    private static let durable = "durable AS MATERIALIZED (SELECT set_config('synchronous_commit', 'on', true))"

    private static func age(of column: String) -> String {
        "(extract(epoch FROM clock_timestamp() - \(column)) * 1000000)::bigint"
    }

    /// Marks the row for an owner, or contests another owner's mark that has ended. `holder` is one of
    ///
    /// - `OWNER`: a mark. It stands until `held_until`.
    /// - `OWNER contested SINCE`: the mark has ended, and others announced a takeover at `SINCE`. Each announcement is
    ///   a committed write, `held_until` is at most `longestGap` after the last one.
    /// - `OWNER taken SINCE`: a mark by a takeover. Its owner may use it once it has seen it in the row soon enough.
    ///
    /// So a takeover needs writes that succeeded, over the whole time $9 and without a longer gap: in this time the
    /// former owner could save. It also needs a commit that took no longer than `longestGap`. A statement that waited
    /// for a lock reads the clock after it, and does nothing after its deadline.
    ///
    /// $1 space, $2 client, $3 its revision or null, $4 the owner, $5 the time of a mark, $6 rows that are left alone:
    /// none (0), those with a mark that has ended (1), also those without a mark (2), or with content and without a mark
    /// (3); for a renewal (-1), those with another owner's mark; $7 whether to ignore a note of a move (1 or 0),
    /// $8 the deadline, $9 the shortest time of a contest, $10 channel, $11 the notification. Times are microseconds.
    /// - Returns: the columns of `read`, the new location of moved records, and the step that was done.
    static let mark = """
        WITH \(durable), locked AS MATERIALIZED (
            SELECT row.revision, row.sealed, row.saved_at, row.holder, row.held_until
            FROM heimdallr.token AS row, durable
            WHERE row.space = $1::text AND row.client = $2::text
                AND ($3::bigint IS NULL OR row.revision = $3::bigint)
                AND ($7::bigint = 1 OR (\(newLocation)) IS NULL)
                AND (row.holder IS NULL OR row.held_until <= clock_timestamp()
                    OR split_part(row.holder, ' ', 1) = $4::text OR split_part(row.holder, ' ', 2) = 'contested')
            FOR NO KEY UPDATE OF row
        ), timed AS MATERIALIZED (
            SELECT locked.*, clock.now, clock.until, split_part(locked.holder, ' ', 1) AS owner,
                split_part(locked.holder, ' ', 2) AS state,
                nullif(split_part(locked.holder, ' ', 3), '')::bigint AS since
            FROM locked CROSS JOIN LATERAL (
                SELECT \(now) AS now, (extract(epoch FROM locked.held_until) * 1000000)::bigint AS until
            ) AS clock
        ), judged AS MATERIALIZED (
            SELECT timed.*, CASE
                WHEN now > $8::bigint THEN 'late'
                WHEN holder IS NULL THEN CASE
                    WHEN $6::bigint = 2 OR $6::bigint = 3 AND sealed IS NOT NULL THEN 'wait' ELSE 'mark' END
                WHEN owner = $4::text AND state = 'taken' AND $6::bigint <> -1 AND now - since <= \(longestGap) THEN 'seen'
                WHEN owner = $4::text AND (state <> 'taken' OR $6::bigint = -1) THEN 'mark'
                WHEN $6::bigint IN (-1, 1, 2) THEN 'wait'
                WHEN state = 'contested' AND until > now THEN CASE
                    WHEN now - since >= $9::bigint THEN 'take'
                    WHEN until - now <= \(longestGap - announcementInterval) THEN 'announce again'
                    ELSE 'wait' END
                WHEN owner = $4::text OR until <= now THEN 'announce'
                ELSE 'wait' END AS step
            FROM timed
        ), marked AS (
            UPDATE heimdallr.token AS row SET holder = CASE judged.step
                    WHEN 'mark' THEN $4::text
                    WHEN 'take' THEN $4::text || ' taken ' || judged.now
                    WHEN 'announce' THEN judged.owner || ' contested ' || judged.now
                    ELSE judged.holder END,
                held_until = timestamptz 'epoch' + interval '1 microsecond' * (judged.now
                    + CASE WHEN judged.step IN ('mark', 'take') THEN $5::bigint ELSE \(longestGap) END)
            FROM judged
            WHERE row.space = $1::text AND row.client = $2::text
                AND judged.step IN ('mark', 'take', 'announce', 'announce again')
        )
        SELECT \(now), coalesce(judged.revision, token.revision),
            CASE WHEN judged.revision IS NULL THEN token.sealed ELSE judged.sealed END,
            \(age(of: "coalesce(judged.saved_at, token.saved_at)")),
            coalesce(judged.step IN ('mark', 'seen'), false),
            CASE WHEN judged.revision IS NOT NULL THEN 0 WHEN token.holder IS NULL THEN NULL ELSE \(left) END,
            CASE WHEN $7::bigint = 1 THEN NULL ELSE (\(newLocation)) END, judged.step,
            (SELECT count(pg_notify($10::text, $11::text)::text) FROM judged WHERE judged.step = 'announce')
        FROM heimdallr.token AS token LEFT JOIN judged ON true
        WHERE token.space = $1::text AND token.client = $2::text
        """

    /// Longest time between two announcements of a takeover, and for the commit of a takeover, in microseconds.
    private static let longestGap = 2_500_000
    /// Shortest time between two announcements, in microseconds.
    private static let announcementInterval = 500_000

    /// Removes an owner's mark. $1 space, $2 client, $3 the owner, $4 channel, $5 the notification, $6 the deadline.
    /// - Returns: the server's clock, and the number of rows changed.
    static let unmark = """
        WITH locked AS MATERIALIZED (
            SELECT row.revision FROM heimdallr.token AS row
            WHERE row.space = $1::text AND row.client = $2::text AND split_part(row.holder, ' ', 1) = $3::text
            FOR NO KEY UPDATE
        ), \(timed), taken AS (
            UPDATE heimdallr.token AS row SET holder = NULL, held_until = NULL FROM timed
            WHERE row.space = $1::text AND row.client = $2::text AND timed.now <= $6::bigint RETURNING row.revision
        )
        SELECT \(now), (SELECT count(pg_notify($4::text, $5::text)::text) FROM taken)
        """

    /// Clock after a lock was granted.
    private static let timed = """
        timed AS MATERIALIZED (
            SELECT clock.now FROM locked CROSS JOIN LATERAL (SELECT \(now) AS now, locked.revision) AS clock
        )
        """

    static let clock = "SELECT \(now)"

    /// Creates the row, which a mark needs. $1 space, $2 client.
    static let make = """
        INSERT INTO heimdallr.token (space, client) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING
        """

    /// $1 space, $2 client.
    /// - Returns: the server's clock, revision, content, the content's age, `false` (`mark` returns here whether the row
    ///   is marked for the owner), and the time until the row's mark ends.
    static let read = """
        SELECT \(now), token.revision, token.sealed, \(age(of: "token.saved_at")), false,
            CASE WHEN token.holder IS NULL OR split_part(token.holder, ' ', 2) = 'contested' THEN NULL ELSE \(left) END
        FROM heimdallr.token AS token WHERE token.space = $1::text AND token.client = $2::text
        """

    /// Replaces a row of the expected revision, and removes its mark. $1 space, $2 client, $3 the expected revision,
    /// $4 the new one, $5 the content, $6 the server's time in microseconds, $7 channel, $8 the notification, $9 the
    /// deadline.
    /// - Returns: the server's clock, and the number of rows changed.
    static let swap = """
        WITH \(durable), locked AS MATERIALIZED (
            SELECT row.revision FROM heimdallr.token AS row, durable
            WHERE row.space = $1::text AND row.client = $2::text AND row.revision = $3::bigint
            FOR NO KEY UPDATE OF row
        ), \(timed), written AS (
            UPDATE heimdallr.token AS row SET revision = $4::bigint, sealed = $5::bytea, holder = NULL, held_until = NULL,
                saved_at = timestamptz 'epoch' + $6::bigint * interval '1 microsecond'
            FROM timed
            WHERE row.space = $1::text AND row.client = $2::text AND timed.now <= $9::bigint RETURNING row.revision
        )
        SELECT \(now), (SELECT count(pg_notify($7::text, $8::text)::text) FROM written)
        """

    /// Revisions, and whether each row has a mark that nobody contests. $1 space, $2 clients.
    static let revisions = """
        SELECT client, revision, holder IS NOT NULL AND split_part(holder, ' ', 2) <> 'contested'
        FROM heimdallr.token WHERE space = $1::text AND client = ANY ($2::text[])
        """

    /// Names of one client's records. Each ends with `-` and a digest: 17 characters. $1 space, $2 the client's name.
    static let names = """
        SELECT client FROM heimdallr.token
        WHERE space = $1::text AND left(client, -17) = $2::text AND sealed IS NOT NULL LIMIT 100
        """

    // MARK: Moves

    /// New location of a space's records, in the column `holder` of the row `moved`. No record has this name, because a
    /// record's name ends with a digest.
    static let newLocation = "SELECT holder FROM heimdallr.token WHERE space = $1::text AND client = 'moved'"

    /// $1 space, $2 the new location or null.
    static let setNewLocation = """
        WITH \(durable)
        INSERT INTO heimdallr.token (space, client, holder) SELECT $1::text, 'moved', $2::text FROM durable
        ON CONFLICT (space, client) DO UPDATE SET holder = excluded.holder
        """

    /// Lock that proxies share, and that `store move` takes exclusively. $1 space.
    static let use = "SELECT pg_try_advisory_lock_shared(hashtextextended('heimdallr ' || $1::text, 0))"
    static let useAlone = "SELECT pg_try_advisory_lock(hashtextextended('heimdallr ' || $1::text, 0))"

    static let schema = "SELECT max(version)::bigint FROM heimdallr.version"

    static let privileges =
        "SELECT "
        + ["token", "pending"].flatMap { table in
            ["SELECT", "INSERT", "UPDATE"].map { "has_table_privilege('heimdallr.\(table)', '\($0)')" }
        }.joined(separator: " AND ")

    // MARK: Pending logins

    /// Replaces the login of the key, or else a taken or expired login. $1 space, $2 key, $3 content, $4 life in
    /// microseconds.
    static let putAgain = """
        UPDATE heimdallr.pending
        SET space = $1::text, key = $2::bytea, sealed = $3::bytea,
            expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
        WHERE slot = coalesce(
            (SELECT slot FROM heimdallr.pending WHERE space = $1::text AND key = $2::bytea),
            (SELECT slot FROM heimdallr.pending WHERE sealed IS NULL OR expires_at < clock_timestamp()
             ORDER BY slot LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED))
        """

    /// Inserts a login, unless the table already has $5 rows. $1 to $4 as for `putAgain`.
    static let putAnew = """
        INSERT INTO heimdallr.pending (space, key, sealed, expires_at)
        SELECT $1::text, $2::bytea, $3::bytea, clock_timestamp() + $4::bigint * interval '1 microsecond'
        WHERE (SELECT count(*) FROM heimdallr.pending) < $5::bigint
        ON CONFLICT (space, key) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at
        """

    /// Removes a login and returns its content, to one caller only. $1 space, $2 key.
    static let takePending = """
        WITH taken AS (
            SELECT slot, sealed FROM heimdallr.pending
            WHERE space = $1::text AND key = $2::bytea AND expires_at > clock_timestamp() FOR UPDATE
        )
        UPDATE heimdallr.pending AS login SET key = NULL, sealed = NULL FROM taken
        WHERE login.slot = taken.slot RETURNING taken.sealed
        """
}
