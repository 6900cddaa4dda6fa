import Heimdallr

/// A fault of the database, in printable words without secrets.
struct PostgresFault: Error, Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// The connection was lost. The server may have executed the last statement.
        case lost
        /// The server refused a statement with this SQLSTATE.
        case refused(String)
    }

    var kind: Kind
    var text: String

    static func lost(_ text: String) -> PostgresFault { PostgresFault(kind: .lost, text: text) }

    /// Advice for a fault that needs a repair; `nil` for a fault that may pass by itself.
    /// https://www.postgresql.org/docs/current/errcodes-appendix.html
    var advice: String? {
        switch kind {
        case .refused("42P01"), .refused("3F000"), .refused("42703"), .refused("42883"):
            "there are no tables of this version: run `heimdallr-proxy store init`, or give the output of "
                + "`store init --sql` to the database's administrator"
        case .refused("42501"):
            "this role lacks a privilege: `heimdallr-proxy store init --sql --role NAME` prints the SQL that grants it"
        case .refused("28P01"), .refused("28000"):
            "correct user and password in `store.connection`, or pg_hba.conf of the server"
        case .refused("3D000"): "create the database, or name another one in `store.connection`"
        default: nil
        }
    }

    /// The store's error at the start of the proxy. Faults with advice are `.misconfigured` and stop the start.
    var storeError: TokenStoreError {
        if let advice { return TokenStoreError("the token store: \(text)", advice: advice, kind: .misconfigured) }
        if text.contains("server does not support SSL") {
            // A message of libpq. The fault is not lasting: TLS can be switched on while the proxy runs.
            return TokenStoreError(
                "the token store can't be reached: \(text)",
                advice:
                    "switch TLS on at the database (`ssl = on`), or set `sslmode=…` in `store.connection`; without TLS the "
                    + "network can read the password",
                kind: .unreachable)
        }
        return TokenStoreError("the token store can't be reached: \(text)", kind: .unreachable)
    }

    /// The store's error in a running proxy: always `.unreachable`. The proxy never bypasses a store that others share.
    var runtimeError: TokenStoreError {
        var error = storeError
        error.kind = .unreachable
        return error
    }
}
