/// The tables of the store, as SQL for the database's administrator.
public enum PostgresSchema {
    /// Longest wait for another session's lock. A waiting statement stops all later users of its table, so the wait is
    /// far below the time in which proxies expect an answer.
    private static let lockTimeout = "2s"
    private static let lockKey = "7521958312837410913"

    /// Creates missing tables and columns in one transaction, and changes no record. Takes no lock for a thing that
    /// exists. After a lock's time limit, it fails with the names of the lock's owners, and nothing is changed.
    /// - Parameter role: database role that uses the tables, if it is not their owner.
    public static func sql(role: String? = nil) -> String {
        var body = tables
        if let role { body += grants(to: role) }
        body += refusal
        // A role's name may contain the mark that ends the block.
        var mark = "$heimdallr$"
        while body.contains(mark) { mark = "$heimdallr_\(mark.count)$" }
        return """
            -- The token store of heimdallr-proxy: sealed records, which the database can't read.
            BEGIN;
            -- No wait for a lock stops the proxies that use the tables.
            SET LOCAL lock_timeout = '\(lockTimeout)';
            DO \(mark)
            DECLARE owners text;
            BEGIN
            \(body)
            END
            \(mark);
            COMMIT;

            """
    }

    private static let tables = """
        -- A lock, because two concurrent runs would both try to create the tables.
        PERFORM pg_advisory_xact_lock(\(lockKey));
        IF to_regnamespace('heimdallr') IS NULL THEN
            CREATE SCHEMA IF NOT EXISTS heimdallr;
        END IF;
        IF to_regclass('heimdallr.version') IS NULL THEN
            CREATE TABLE IF NOT EXISTS heimdallr.version (
                one boolean PRIMARY KEY DEFAULT true CHECK (one),
                version integer NOT NULL
            );
        END IF;
        -- One row for each client of each installation (`store.space`). `holder` is the owner of the row's lease.
        IF to_regclass('heimdallr.token') IS NULL THEN
            CREATE TABLE IF NOT EXISTS heimdallr.token (
                space text NOT NULL,
                client text NOT NULL,
                revision bigint NOT NULL DEFAULT 0 CHECK (revision >= 0),
                sealed bytea,
                saved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                holder text,
                held_until timestamptz,
                PRIMARY KEY (space, client)
            ) WITH (fillfactor = 50);
        END IF;
        -- Columns that tables of former versions lack.
        \(column("holder", "text", of: "token"))
        \(column("held_until", "timestamptz", of: "token"))
        -- Logins under way. Rows are reused, so no role needs to remove any.
        IF to_regclass('heimdallr.pending') IS NULL THEN
            CREATE TABLE IF NOT EXISTS heimdallr.pending (
                slot bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                space text NOT NULL,
                key bytea,
                sealed bytea,
                expires_at timestamptz NOT NULL,
                UNIQUE (space, key)
            );
        END IF;
        IF coalesce((SELECT max(version) FROM heimdallr.version), 0) < \(Statements.version) THEN
            INSERT INTO heimdallr.version (version) VALUES (\(Statements.version))
                ON CONFLICT (one) DO UPDATE SET version = excluded.version
                WHERE heimdallr.version.version < excluded.version;
        END IF;

        """

    /// Adds a column that is missing. `ADD COLUMN IF NOT EXISTS` would lock the table in any case.
    private static func column(_ name: String, _ type: String, of table: String) -> String {
        """
        IF NOT EXISTS (SELECT FROM pg_attribute
            WHERE attrelid = 'heimdallr.\(table)'::regclass AND attname = '\(name)' AND NOT attisdropped) THEN
            ALTER TABLE heimdallr.\(table) ADD COLUMN IF NOT EXISTS \(name) \(type);
        END IF;
        """
    }

    private static func grants(to role: String) -> String {
        let (name, text) = (quoted(role, "\""), "E" + quoted(role.replacing("\\", with: "\\\\"), "'"))
        var grants = """
            IF NOT has_schema_privilege(\(text), 'heimdallr', 'USAGE') THEN
                GRANT USAGE ON SCHEMA heimdallr TO \(name);
            END IF;

            """
        for (table, rights) in [
            ("version", ["SELECT"]), ("token", ["SELECT", "INSERT", "UPDATE"]),
            ("pending", ["SELECT", "INSERT", "UPDATE"]),
        ] {
            let has = rights.map { "has_table_privilege(\(text), 'heimdallr.\(table)', '\($0)')" }
            grants += """
                IF NOT (\(has.joined(separator: " AND "))) THEN
                    GRANT \(rights.joined(separator: ", ")) ON heimdallr.\(table) TO \(name);
                END IF;

                """
        }
        return grants
    }

    /// Names the sessions whose locks were in the way. Of their statements, it shows the first word only: the rest may
    /// hold secrets.
    private static let refusal = """
        EXCEPTION WHEN lock_not_available THEN
            SELECT array_to_string((array_agg(DISTINCT coalesce(
                coalesce(nullif(activity.application_name, ''), activity.usename, activity.backend_type)
                    || ' (process ' || activity.pid
                    || coalesce(', ' || upper(substring(activity.query FROM '^[[:space:]]*([[:alpha:]]{1,20})')), '') || ')',
                'the prepared transaction ' || prepared.gid)))[1:3], ', ')
                INTO owners
                FROM pg_locks AS locks
                LEFT JOIN pg_stat_activity AS activity ON activity.pid = locks.pid
                    AND (activity.xact_start < clock_timestamp() - interval '1 second' OR activity.xact_start IS NULL)
                LEFT JOIN pg_locks AS own ON locks.pid IS NULL AND own.pid IS NULL
                    AND own.virtualtransaction = locks.virtualtransaction AND own.locktype = 'transactionid'
                LEFT JOIN pg_prepared_xacts AS prepared ON prepared.transaction = own.transactionid
                WHERE locks.granted AND locks.pid IS DISTINCT FROM pg_backend_pid()
                AND coalesce(activity.pid::text, prepared.gid) IS NOT NULL
                AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (locks.relation IN (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace('heimdallr'))
                    OR locks.locktype = 'advisory' AND locks.objsubid = 1
                        AND locks.classid::bigint << 32 | locks.objid::bigint = \(lockKey));
            RAISE EXCEPTION 'the tables of the token store are locked by %', coalesce(owners, 'another session')
                USING ERRCODE = 'lock_not_available',
                HINT = 'Nothing was changed, and nothing waits for the lock. Try again when that session has ended.';
        """

    private static func quoted(_ name: String, _ quote: Character) -> String {
        String(quote) + name.reduce(into: "") { $0 += $1 == quote ? "\(quote)\(quote)" : String($1) } + String(quote)
    }
}
