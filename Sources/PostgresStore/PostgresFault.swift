import Heimdallr

/// A fault of the database, in printable words without secrets.
struct PostgresFault: Error, Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// The connection was lost. The server may have executed the last statement.
        case lost
        /// The server refused a connection or a statement with this SQLSTATE.
        case refused(String)
        /// This side found the fault.
        case found(Finding)
    }

    /// A fault that this side finds, without a SQLSTATE of the server.
    enum Finding: String, Sendable {
        /// The host's name has no address.
        case noAddress
        /// The server wants a password, and the connection string has none.
        case noPassword
        /// The server has no TLS, and the connection string demands it.
        case noTLS
        /// TLS failed: mostly a certificate that is not trusted, or that has another name.
        case untrusted
        case olderTables, newerTables
        /// TLS failed because of the proxy's own certificate or key.
        case ownCertificate
        /// The role may not make the tables.
        case mayNotMake
        /// Another session's lock keeps `store init` from changing the tables.
        case lockedTables
    }

    var kind: Kind
    var text: String
    /// Whether the server had asked for a password when it refused the connection.
    var usedPassword = false

    /// Whether the server undid the transaction because of a concurrent one, so that the statement can be repeated:
    /// `serialization_failure` and `deadlock_detected`.
    var isConflict: Bool { kind == .refused("40001") || kind == .refused("40P01") }

    static func lost(_ text: String) -> PostgresFault { PostgresFault(kind: .lost, text: text) }

    /// Whether the server refuses the user or the password. Servers lock accounts after several refusals.
    var isCredentialRefusal: Bool {
        switch kind {
        case .refused(let state): state.hasPrefix("28")
        case .found(.noPassword): true
        default: false
        }
    }

    /// Whether the server does not write: a standby, a full disk, an administrator's setting.
    var isReadOnly: Bool { kind == .refused("25006") }

    private var isConnectionFault: Bool {
        switch kind {
        case .lost: true
        case .found(let finding): finding != .lockedTables
        case .refused(let state): ["08", "53", "57P"].contains { state.hasPrefix($0) }
        }
    }

    private var remedy: Remedy? { Remedy.of(kind) }

    /// Advice for this condition; `nil` for a fault without a known cause.
    var advice: String? { remedy?.advice }

    /// The store's error at the start of the proxy. Lasting faults are `.misconfigured` and stop the start.
    var storeError: TokenStoreError {
        let isLasting = remedy?.isLasting ?? false
        let away = isConnectionFault ? " can't be reached" : " can't be used"
        let state = isLasting ? "" : isReadOnly ? " can't be written" : away
        let (sentence, kind) = (
            "the token store\(state): \(text)", isLasting ? TokenStoreError.Kind.misconfigured : .unreachable
        )
        guard let advice else { return TokenStoreError(sentence, kind: kind) }
        return TokenStoreError(sentence, advice: advice, kind: kind)
    }

    /// The store's error in a running proxy: always `.unreachable`. The proxy never bypasses a store that others share.
    var runtimeError: TokenStoreError {
        var error = storeError
        error.kind = .unreachable
        return error
    }
}

extension PostgresFault {
    /// Reads libpq's message about a connection attempt, in the form of PQERRORS_VERBOSE: `FATAL:  28P01: …`. The SQLSTATE
    /// decides, because the server's words are in its own language. Of libpq's own words, which this program never
    /// translates (it calls no setlocale(3)), those about TLS count, because libpq has no code for them.
    init(connecting message: String) {
        var (state, lines): (String?, [String]) = (nil, [])
        for line in message.split(separator: "\n") where !line.hasPrefix("LOCATION:") {
            guard let code = Self.state(in: line) else {
                lines.append(String(line))
                continue
            }
            state = state ?? String(line[code])
            lines.append(String(line[..<code.lowerBound] + line[code.upperBound...].dropFirst(2)))
        }
        text = lines.joined(separator: "\n")
        kind = state.map { .refused($0) } ?? Self.tlsFinding(text).map { .found($0) } ?? .lost
        if let state { text += " [\(state)]" }
    }

    /// Finds five digits or capital letters between `:  ` and `: `.
    private static func state(in line: Substring) -> Range<Substring.Index>? {
        guard let mark = line.firstRange(of: ":  ") else { return nil }
        let code = line[mark.upperBound...].prefix(5)
        let isCode = code.utf8.count == 5 && code.utf8.allSatisfy { (0x30...0x39) ~= $0 || (0x41...0x5A) ~= $0 }
        return isCode && line[code.endIndex...].hasPrefix(": ") ? code.startIndex..<code.endIndex : nil
    }

    private static func tlsFinding(_ text: String) -> Finding? {
        if text.contains("server does not support SSL") { return .noTLS }
        let own = ["private key", "certificate present", "could not read certificate", "alert"]
        if own.contains(where: text.contains),
            text.contains("SSL") || text.contains("key") || text.contains("certificate")
        {
            return .ownCertificate
        }
        return text.contains("certificate") ? .untrusted : nil
    }
}

/// Advice for one condition of the database. The table has a row for each condition.
private struct Remedy {
    /// SQLSTATEs, classes of them (two characters), and names of `PostgresFault.Finding`.
    let conditions: [String]
    /// Whether only an operator can end the fault. Such a fault stops the start.
    let isLasting: Bool
    let advice: String

    /// https://www.postgresql.org/docs/current/errcodes-appendix.html
    private static let table: [Remedy] = [
        Remedy(
            conditions: ["42P01", "3F000", "42703", "42883"], isLasting: true,
            advice: "there are no tables of this version: run `heimdallr-proxy store init`, or give the output of "
                + "`store init --sql` to the database's administrator"),
        Remedy(
            conditions: ["olderTables"], isLasting: true,
            advice: "run `heimdallr-proxy store init` of this program, and update all proxies of the space"),
        Remedy(
            conditions: ["newerTables"], isLasting: true,
            advice: "install the newer program: another one has run its `heimdallr-proxy store init`"),
        Remedy(
            conditions: ["42501"], isLasting: true,
            advice: "this role lacks a privilege: `heimdallr-proxy store init --sql --role NAME` prints the SQL "
                + "that grants it"),
        Remedy(
            conditions: ["mayNotMake"], isLasting: true,
            advice: "this role may not make the tables (CREATE): give the output of `heimdallr-proxy store init "
                + "--sql --role NAME` to the database's administrator"),
        Remedy(
            conditions: ["lockedTables"], isLasting: false,
            advice: "run it again when that session has ended; nothing was changed, and nothing waits for the lock"),
        Remedy(
            conditions: ["28"], isLasting: true,
            advice: "correct user and password in `store.connection`, or pg_hba.conf of the server; the proxy reads "
                + "the secret again before each attempt"),
        Remedy(
            conditions: ["noPassword"], isLasting: true,
            advice: "write `password=…` or `passfile=…` into `store.connection`; libpq ignores a passfile that "
                + "other users can read"),
        Remedy(
            conditions: ["3D000"], isLasting: true,
            advice: "create the database, or name another one in `store.connection`"),
        Remedy(
            conditions: ["42704", "22023"], isLasting: true,
            advice: "correct `options` in `store.connection`, or the name of the role"),
        Remedy(
            conditions: ["25006"], isLasting: false,
            advice: "make the server writable again (its disk, `default_transaction_read_only`, its role as "
                + "primary), or name the writable server in `host` too; until then valid tokens serve, and none is "
                + "refreshed"),
        Remedy(
            conditions: ["53300", "53400"], isLasting: false,
            advice: "raise `max_connections` of the server or the role's and database's CONNECTION LIMIT, or end "
                + "other programs' connections: each proxy needs one"),
        Remedy(
            conditions: ["53100"], isLasting: false, advice: "make room on the disk of the database's server"),
        Remedy(
            conditions: ["53", "58", "XX"], isLasting: false,
            advice: "read the log of the database's server: it lacks memory, or its files are damaged"),
        Remedy(
            conditions: ["57P01", "57P02", "57P03"], isLasting: false,
            advice: "wait until the database has started; the proxy tries again"),
        Remedy(
            conditions: ["57014", "55P03"], isLasting: false,
            advice: "find the session that locks the tables of schema heimdallr or keeps the server busy, in "
                + "pg_stat_activity; the proxy tries again"),
        Remedy(
            conditions: ["noAddress"], isLasting: false,
            advice: "correct `host` in `store.connection`, or the name servers of this machine"),
        Remedy(
            conditions: ["noTLS"], isLasting: false,
            advice: "switch TLS on at the database (`ssl = on`), or set `sslmode=…` in `store.connection`; without "
                + "TLS the network can read the password"),
        Remedy(
            conditions: ["ownCertificate"], isLasting: false,
            advice:
                "correct `sslcert` and `sslkey` in `store.connection`: files that the proxy's user can read, the key "
                + "of mode 0600, and a certificate that the server accepts"),
        Remedy(
            conditions: ["untrusted"], isLasting: false,
            advice: "name the file with the authority of the server's certificate in `sslrootcert`, and in `host` "
                + "the name that is in the certificate"),
    ]

    static func of(_ kind: PostgresFault.Kind) -> Remedy? {
        switch kind {
        case .lost: nil
        case .found(let finding): row(finding.rawValue)
        case .refused(let state): row(state) ?? row(String(state.prefix(2)))
        }
    }

    private static func row(_ condition: String) -> Remedy? { table.first { $0.conditions.contains(condition) } }
}
