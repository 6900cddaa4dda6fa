// Statements of the connection itself.
extension Statements {
    private static let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    /// The first statement of a connection.
    /// - Returns: the server's process, whether the server refuses to write, its clock in microseconds, and the time of its start.
    static let state = """
        SELECT pg_backend_pid(), current_setting('transaction_read_only')::boolean, \(now),
            (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
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
