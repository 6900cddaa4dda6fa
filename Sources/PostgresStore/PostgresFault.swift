import Heimdallr
import WireText

/// A fault of the database, in printable words without secrets.
struct PostgresFault: Error, Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// The connection was lost. The server may have executed the last statement.
        case lost
        /// The server refused a connection or a statement with this SQLSTATE.
        case refused(String)
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

/// Advice for one condition of the database: a row of Remedies.tsv.
private struct Remedy {
    /// SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html), classes of them (two characters), and
    /// names of `PostgresFault.Finding`.
    let conditions: [Substring]
    /// Whether only an operator can end the fault. Such a fault stops the start.
    let isLasting: Bool
    let advice: String

    private static let table = TextTable.rows(PackageResources.Remedies_tsv, columns: 3).map { cells in
        Remedy(conditions: cells[0].split(separator: " "), isLasting: cells[1] == "lasting", advice: cells[2])
    }

    static func of(_ kind: PostgresFault.Kind) -> Remedy? {
        switch kind {
        case .lost: nil
        case .found(let finding): row(finding.rawValue)
        case .refused(let state): row(state) ?? row(String(state.prefix(2)))
        }
    }

    private static func row(_ condition: String) -> Remedy? {
        table.first { $0.conditions.contains(condition[...]) }
    }
}
