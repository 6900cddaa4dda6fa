/// The tables of the store, as SQL for the database's administrator.
public enum PostgresSchema {
    /// Creates missing tables and columns in one transaction, and changes no record.
    /// - Parameter role: database role that uses the tables, if it is not their owner.
    public static func sql(role: String? = nil) -> String {
        var text = """
            -- The token store of heimdallr-proxy: sealed records, which the database can't read.
            BEGIN;
            -- A lock, because two concurrent runs would both try to create the tables.
            DO $$ BEGIN PERFORM pg_advisory_xact_lock(7521958312837410913); END $$;
            CREATE SCHEMA IF NOT EXISTS heimdallr;
            CREATE TABLE IF NOT EXISTS heimdallr.version (
                one boolean PRIMARY KEY DEFAULT true CHECK (one),
                version integer NOT NULL
            );
            -- One row for each client of each installation (`store.space`). `holder` is the owner of the row's lease.
            CREATE TABLE IF NOT EXISTS heimdallr.token (
                space text NOT NULL,
                client text NOT NULL,
                revision bigint NOT NULL DEFAULT 0 CHECK (revision >= 0),
                sealed bytea,
                saved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                PRIMARY KEY (space, client)
            ) WITH (fillfactor = 50);
            ALTER TABLE heimdallr.token ADD COLUMN IF NOT EXISTS holder text,
                ADD COLUMN IF NOT EXISTS held_until timestamptz;
            -- Logins under way. Rows are reused, so no role needs to remove any.
            CREATE TABLE IF NOT EXISTS heimdallr.pending (
                slot bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                space text NOT NULL,
                key bytea,
                sealed bytea,
                expires_at timestamptz NOT NULL,
                UNIQUE (space, key)
            );
            INSERT INTO heimdallr.version (version) VALUES (\(Statements.version))
                ON CONFLICT (one) DO UPDATE SET version = excluded.version
                WHERE heimdallr.version.version < excluded.version;

            """
        if let role {
            let name = quoted(role)
            text += """
                GRANT USAGE ON SCHEMA heimdallr TO \(name);
                GRANT SELECT ON heimdallr.version TO \(name);
                GRANT SELECT, INSERT, UPDATE ON heimdallr.token, heimdallr.pending TO \(name);

                """
        }
        return text + "COMMIT;\n"
    }

    private static func quoted(_ name: String) -> String {
        "\"" + name.reduce(into: "") { $0 += $1 == "\"" ? "\"\"" : String($1) } + "\""
    }
}
