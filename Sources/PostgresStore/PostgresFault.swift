import Heimdallr

/// A fault of the database, in printable words without secrets.
struct PostgresFault: Error, Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// There is no connection any longer. The last statement may have been executed.
        case lost
        /// The server refused a statement with this SQLSTATE.
        case refused(String)
    }

    var kind: Kind
    var text: String

    static func lost(_ text: String) -> PostgresFault { PostgresFault(kind: .lost, text: text) }

    /// Advice for faults that do not pass by themselves.
    /// https://www.postgresql.org/docs/current/errcodes-appendix.html
    var advice: String? {
        switch kind {
        case .refused("42P01"), .refused("3F000"), .refused("42703"), .refused("42883"):
            "there are no tables of this version: run `heimdallr-proxy store init`, or give the output of "
                + "`store init --sql` to the database's administrator"
        case .refused("42501"):
            "this role may not do it: `heimdallr-proxy store init --sql --role NAME` prints what grants it"
        case .refused("28P01"), .refused("28000"):
            "correct user and password in `store.connection`, or pg_hba.conf of the server"
        case .refused("3D000"): "create the database, or name another one in `store.connection`"
        default: nil
        }
    }

    /// The error at the start, which some faults stop.
    var storeError: TokenStoreError {
        if let advice { return TokenStoreError("the token store: \(text)", advice: advice, kind: .misconfigured) }
        if text.contains("server does not support SSL") {
            // Words of libpq. TLS can be switched on at the database without a restart here.
            return TokenStoreError(
                "the token store can't be reached: \(text)",
                advice:
                    "switch TLS on at the database (`ssl = on`), or set `sslmode=…` in `store.connection`; without TLS the "
                    + "network can read the password",
                kind: .unreachable)
        }
        return TokenStoreError("the token store can't be reached: \(text)", kind: .unreachable)
    }

    /// The error in a running process, which never goes on without the store, because other processes share it.
    var lateError: TokenStoreError {
        var error = storeError
        error.kind = .unreachable
        return error
    }
}
