import CLibpq
import Glibc
import Heimdallr
import Synchronization

/// The distribution's libpq, loaded when a store is configured that needs it.
enum Libpq {
    /// The functions; they stay where they are, and may be called on any thread.
    @safe struct Table: @unchecked Sendable {
        let call: heimdallr_libpq
    }

    private static let loaded = Mutex<Table?>(nil)

    /// - Throws: `TokenStoreError` of the kind `.misconfigured` where there is none.
    static func load() throws(TokenStoreError) -> Table {
        try loaded.withLock { loaded throws(TokenStoreError) in
            if let loaded { return loaded }
            var functions = heimdallr_libpq()
            if let missing = unsafe heimdallr_libpq_load(&functions) {
                let name = unsafe String(cString: missing)
                throw TokenStoreError(
                    "the token store in PostgreSQL needs libpq, and \(name) is not there: install libpq5, as Debian and "
                        + "Ubuntu call it, version 14 or later",
                    kind: .misconfigured)
            }
            let table = Table(call: functions)
            guard table.call.PQlibVersion() >= 140_000 else {
                throw TokenStoreError(
                    "the token store in PostgreSQL needs libpq 14 or later: install a newer libpq5",
                    kind: .misconfigured)
            }
            // These four count for libpq whatever it is told; the others are told to it one by one (`ConnectionTarget`).
            for name in ["PGSERVICE", "PGDATESTYLE", "PGTZ", "PGGEQO"] { _ = unsafe unsetenv(name) }
            loaded = table
            return table
        }
    }
}
