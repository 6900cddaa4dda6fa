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

    /// Marks the row. $1 space, $2 client, $3 its revision or null, $4 the owner, $5 the time in microseconds, $6
    /// whether a mark that has ended may be replaced (1 or 0), $7 whether to ignore a note of a move (1 or 0). For 5
    /// seconds after the server's start, marks that have ended are still valid.
    /// - Returns: the columns of `read`, and the new location of moved records.
    static let mark = """
        WITH \(durable), marked AS (
            UPDATE heimdallr.token AS row SET holder = $4::text,
                held_until = clock_timestamp() + $5::bigint * interval '1 microsecond'
            FROM durable
            WHERE row.space = $1::text AND row.client = $2::text
                AND ($3::bigint IS NULL OR row.revision = $3::bigint)
                AND ($7::bigint = 1 OR (\(newLocation)) IS NULL)
                AND (row.holder IS NULL OR row.holder = $4::text
                    OR (row.held_until <= clock_timestamp() AND $6::bigint = 1
                        AND clock_timestamp() - pg_postmaster_start_time() > interval '5 seconds'))
            RETURNING row.revision, row.sealed, row.saved_at
        )
        SELECT \(now), coalesce(marked.revision, token.revision),
            CASE WHEN marked.revision IS NULL THEN token.sealed ELSE marked.sealed END,
            \(age(of: "coalesce(marked.saved_at, token.saved_at)")), marked.revision IS NOT NULL,
            CASE WHEN token.holder IS NULL THEN NULL ELSE \(left) END,
            CASE WHEN $7::bigint = 1 THEN NULL ELSE (\(newLocation)) END
        FROM heimdallr.token AS token LEFT JOIN marked ON true
        WHERE token.space = $1::text AND token.client = $2::text
        """

    /// Removes an owner's mark. $1 space, $2 client, $3 the owner, $4 channel, $5 the notification.
    static let unmark = """
        WITH taken AS (
            UPDATE heimdallr.token SET holder = NULL, held_until = NULL
            WHERE space = $1::text AND client = $2::text AND holder = $3::text RETURNING revision
        )
        SELECT pg_notify($4::text, $5::text) FROM taken
        """

    static let clock = "SELECT \(now)"

    /// Creates the row, which a mark needs. $1 space, $2 client.
    static let make = """
        INSERT INTO heimdallr.token (space, client) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING
        """

    /// $1 space, $2 client.
    /// - Returns: the server's clock, revision, content, the content's age, `false` (`mark` returns here whether it has
    ///   marked the row), and the time until the row's mark ends.
    static let read = """
        SELECT \(now), token.revision, token.sealed, \(age(of: "token.saved_at")), false,
            CASE WHEN token.holder IS NULL THEN NULL ELSE \(left) END
        FROM heimdallr.token AS token WHERE token.space = $1::text AND token.client = $2::text
        """

    /// Replaces a row of the expected revision, and removes its mark. $1 space, $2 client, $3 the expected revision,
    /// $4 the new one, $5 the content, $6 the server's time in microseconds, $7 channel, $8 the notification.
    static let swap = """
        WITH \(durable), written AS (
            UPDATE heimdallr.token AS row SET revision = $4::bigint, sealed = $5::bytea, holder = NULL, held_until = NULL,
                saved_at = timestamptz 'epoch' + $6::bigint * interval '1 microsecond'
            FROM durable
            WHERE row.space = $1::text AND row.client = $2::text AND row.revision = $3::bigint RETURNING row.revision
        )
        SELECT pg_notify($7::text, $8::text) FROM written
        """

    /// $1 space, $2 clients.
    static let revisions = """
        SELECT client, revision, holder IS NOT NULL FROM heimdallr.token WHERE space = $1::text AND client = ANY ($2::text[])
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

    static let process = "SELECT pg_backend_pid()"
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
