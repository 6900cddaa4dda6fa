// Statements of the connection itself.
extension Statements {
    private static let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    /// The first statement of a connection.
    /// - Returns: the server's process, whether the server refuses to write, its clock in microseconds, and the time of its start.
    static let state = """
        SELECT pg_backend_pid(), current_setting('transaction_read_only')::boolean, \(now),
            (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
        """

    /// Whether the server was started or promoted in the last $1 microseconds, so that it may lack the last commits. Only a
    /// server that was promoted since its start has replayed anything. Its promotion ends with a checkpoint; until then
    /// the control file has the former timeline.
    static let isYoung = """
        SELECT pg_postmaster_start_time() > clock_timestamp() - interval '1 microsecond' * $1::bigint
            OR CASE WHEN pg_is_in_recovery() OR pg_last_wal_replay_lsn() IS NULL THEN false ELSE
                checkpoint_time > clock_timestamp() - interval '1 microsecond' * $1::bigint
                OR lpad(upper(to_hex(timeline_id)), 8, '0') <> left(pg_walfile_name(pg_current_wal_lsn()), 8) END
        FROM pg_control_checkpoint()
        """

    /// Precedes each statement in its transaction, and limits its time at the server. $1 the end by the server's clock in
    /// microseconds. Fails with `isLate` after the end, so that nothing of the transaction is carried out.
    /// - Returns: the server's clock.
    static let timeLimit = """
        SELECT \(now), set_config('statement_timeout', greatest(1, ($1::bigint - \(now)) / 1000)::text, true),
            1 / ($1::bigint > \(now))::integer
        """

    /// SQLSTATE `division_by_zero`.
    static let isLate = "22012"
}
