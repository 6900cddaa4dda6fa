import Heimdallr

/// What went wrong with the database, in words that may be shown.
struct PostgresFault: Error, Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// The connection is gone, or never was, or was given up. Whether the last statement was carried out is not known.
        case lost
        /// The server has refused a statement, and said why: five characters of SQL's, in brackets where it is shown.
        case refused(String)
    }

    var kind: Kind
    var text: String

    static func lost(_ text: String) -> PostgresFault { PostgresFault(kind: .lost, text: text) }

    /// https://www.postgresql.org/docs/current/errcodes-appendix.html
    var sqlState: String? {
        if case .refused(let code) = kind { return code }
        return nil
    }

    /// Whether the same may go well a moment later: no room, no memory, no time, a conflict.
    var isPassing: Bool {
        guard let code = sqlState else { return false }
        return ["53", "57", "58", "40"].contains(String(code.prefix(2))) || code == "55P03"
    }

    /// What an operator has to do about it, when that is clear: nothing changes by waiting.
    var advice: String? {
        guard let code = sqlState else { return nil }
        switch code {
        case "42P01", "3F000", "42703", "42883":
            return
                "there are no tables of this version: run `heimdallr-proxy store init`, or give what `store init --sql` "
                + "prints to whoever keeps the database"
        case "42501":
            return "this role may not do it: `heimdallr-proxy store init --sql --role NAME` prints what to grant"
        case "28P01", "28000": return "mend user and password in `store.connection`, or pg_hba.conf of the server"
        case "3D000": return "make the database, or name another one in `store.connection`"
        default: return nil
        }
    }

    /// For the start, which such a fault shall stop.
    var storeError: TokenStoreError {
        if let advice { return TokenStoreError("the token store: \(text)", advice: advice, kind: .misconfigured) }
        if text.contains("server does not support SSL") {
            // As libpq says it. Whoever switches TLS on there mends it without a restart here.
            return TokenStoreError(
                "the token store can't be reached: \(text)",
                advice:
                    "switch TLS on at the database (`ssl = on`), or say in `store.connection` how it shall be, with "
                    + "`sslmode=…`; without TLS the password and who uses the store can be read on the way",
                kind: .unreachable)
        }
        return TokenStoreError("the token store can't be reached: \(text)", kind: .unreachable)
    }

    /// For a process that is at work: to go on as without a store would harm whoever shares it.
    var lateError: TokenStoreError {
        var error = storeError
        error.kind = .unreachable
        return error
    }
}
