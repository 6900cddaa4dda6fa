/// What is said to the database. Everything holds for one transaction at most and nothing is prepared, so that a pooler
/// may give each transaction another connection. Names are written out: no `search_path` counts.
enum Statements {
    /// What the tables look like that this version works with.
    static let version: Int64 = 1

    /// - Parameters:
    ///   - idle: how long the transaction may stand still before the server ends it, in milliseconds.
    ///   - statement: how long one statement may take, in milliseconds.
    ///   - lock: how long one may wait for a lock, in milliseconds, on top.
    static func begin(idle: Int64, statement: Int64, lock: Int64 = 1000) -> String {
        """
        BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
        SET LOCAL idle_in_transaction_session_timeout = \(idle); \
        SET LOCAL statement_timeout = \(statement + lock); SET LOCAL lock_timeout = \(lock); \
        SET LOCAL synchronous_commit = on
        """
    }

    private static let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    private static let since = "(extract(epoch FROM clock_timestamp() - saved_at) * 1000000)::bigint"

    /// Takes the row's lock if nobody has it. $1 space, $2 client, $3 what the holder is called meanwhile.
    /// - Returns: the clock, whether there is a row, and if it is ours now, its revision, content and age; and when the
    ///   server was started and how long ago, and which of its processes this is.
    static let take = take("FOR NO KEY UPDATE SKIP LOCKED")

    /// The same for who may not come after others: stands in the line for the lock, before all who only look.
    static let takeLate = take("FOR NO KEY UPDATE")

    private static func take(_ lock: String) -> String {
        """
        WITH held AS (
            SELECT revision, sealed, \(since) AS since FROM heimdallr.token
            WHERE space = $1::text AND client = $2::text \(lock)
        )
        SELECT \(now), EXISTS (SELECT FROM heimdallr.token WHERE space = $1::text AND client = $2::text),
            held.revision, held.sealed, held.since,
            CASE WHEN held.revision IS NULL THEN NULL ELSE set_config('application_name', $3::text, true) END,
            (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
            (extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000000)::bigint,
            pg_backend_pid()
        FROM (VALUES (1)) AS one LEFT JOIN held ON true
        """
    }

    /// Ends a session of the same user by its process and name. $1 process, $2 name.
    static let end = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE pid = $1::bigint AND application_name = $2::text AND usename = current_user
        """

    /// A lock needs a row. $1 space, $2 client.
    static let make = """
        INSERT INTO heimdallr.token (space, client) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING
        """

    /// $1 space, $2 client.
    static let read = """
        SELECT \(now), revision, sealed, \(since) FROM heimdallr.token WHERE space = $1::text AND client = $2::text
        """

    /// $1 space, $2 client, $3 the revision that was there, $4 the new one, $5 the content, $6 when, in microseconds by
    /// the server's clock, $7 channel, $8 what others are told.
    static let write = """
        WITH written AS (
            UPDATE heimdallr.token SET revision = $4::bigint, sealed = $5::bytea,
                saved_at = timestamptz 'epoch' + $6::bigint * interval '1 microsecond'
            WHERE space = $1::text AND client = $2::text AND revision = $3::bigint RETURNING revision
        )
        SELECT pg_notify($7::text, $8::text) FROM written
        """

    /// $1 space, $2 clients.
    static let revisions = """
        SELECT client, revision FROM heimdallr.token WHERE space = $1::text AND client = ANY ($2::text[])
        """

    /// Records of one client, whichever server they belong to. $1 space, $2 the client's name.
    static let names = """
        SELECT client FROM heimdallr.token
        WHERE space = $1::text AND left(client, -17) = $2::text AND sealed IS NOT NULL LIMIT 100
        """

    static let process = "SELECT pg_backend_pid()"
    static let schema = "SELECT max(version)::bigint FROM heimdallr.version"

    // MARK: Pending logins

    /// Puts it where it was before, else where something has ended. $1 space, $2 key, $3 content, $4 life in microseconds.
    static let putAgain = """
        UPDATE heimdallr.pending
        SET space = $1::text, key = $2::bytea, sealed = $3::bytea,
            expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
        WHERE slot = coalesce(
            (SELECT slot FROM heimdallr.pending WHERE space = $1::text AND key = $2::bytea),
            (SELECT slot FROM heimdallr.pending WHERE sealed IS NULL OR expires_at < clock_timestamp()
             ORDER BY slot LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED))
        """

    /// The same, at most $5 of them in all.
    static let putAnew = """
        INSERT INTO heimdallr.pending (space, key, sealed, expires_at)
        SELECT $1::text, $2::bytea, $3::bytea, clock_timestamp() + $4::bigint * interval '1 microsecond'
        WHERE (SELECT count(*) FROM heimdallr.pending) < $5::bigint
        ON CONFLICT (space, key) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at
        """

    /// For one caller: the second finds an empty place. $1 space, $2 key.
    static let takePending = """
        WITH taken AS (
            SELECT slot, sealed FROM heimdallr.pending
            WHERE space = $1::text AND key = $2::bytea AND expires_at > clock_timestamp() FOR UPDATE
        )
        UPDATE heimdallr.pending AS place SET key = NULL, sealed = NULL FROM taken
        WHERE place.slot = taken.slot RETURNING taken.sealed
        """
}
