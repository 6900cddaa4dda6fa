import CLibpq
import Glibc
import Heimdallr
import Synchronization

/// The distribution's libpq, loaded on first use.
enum Libpq {
    /// The functions. Any thread may call them.
    @safe struct Table: @unchecked Sendable {
        let call: heimdallr_libpq
    }

    private static let loaded = Mutex<Table?>(nil)

    /// - Throws: `TokenStoreError` of the kind `.misconfigured` without libpq.
    static func load() throws(TokenStoreError) -> Table {
        try loaded.withLock { loaded throws(TokenStoreError) in
            if let loaded { return loaded }
            var functions = heimdallr_libpq()
            if let missing = unsafe heimdallr_libpq_load(&functions) {
                let name = unsafe String(cString: missing)
                throw TokenStoreError(
                    "the token store in PostgreSQL needs libpq, and \(name) is missing: install version 14 or later, on Debian "
                        + "and Ubuntu libpq5",
                    kind: .misconfigured)
            }
            let table = Table(call: functions)
            guard table.call.PQlibVersion() >= 140_000 else {
                throw TokenStoreError(
                    "the token store in PostgreSQL needs libpq 14 or later: install a newer libpq5",
                    kind: .misconfigured)
            }
            // libpq reads these four variables in any case. `ConnectionTarget` overrides all others.
            for name in ["PGSERVICE", "PGDATESTYLE", "PGTZ", "PGGEQO"] { _ = unsafe unsetenv(name) }
            loaded = table
            return table
        }
    }
}
