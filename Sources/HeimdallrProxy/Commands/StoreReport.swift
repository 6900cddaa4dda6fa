import Heimdallr
import PostgresStore
import WireText

extension OAuthAccessTokenPostgresStore.Report {
    /// For people to read.
    /// - Parameter known: names of the records that the configuration uses.
    func text(known: Set<String>) -> String {
        var text = """
            PostgreSQL \(ForeignText.printable(server)), tables of version \(schema)
            changes are \(isPooled ? "looked for: there is a pooler in between" : "heard")
            \(rows.count { !$0.isEmpty }.counted("record")), \(pendingLogins.counted("login")) under way

            """
        if let newPlace { text += "moved to \(ForeignText.printable(newPlace)): no proxy starts on it\n" }
        for row in rows {
            let key = row.isEmpty ? "empty" : row.key.map { "key \($0)" } ?? "sealed with a key that is not configured"
            text += "  \(Self.client(row.client)): revision \(row.revision), \(key), written \(row.age.rough) ago"
            text +=
                known.contains(row.client)
                ? "\n" : ", not of this configuration: \(ForeignText.printable(row.client))\n"
        }
        if !leases.isEmpty { text += "Leases:\n" }
        for lease in leases {
            text += "  \(Self.client(lease.client)): \(ForeignText.printable(lease.holder)), "
            text += lease.left > .zero ? "for \(lease.left.rough) more\n" : "ended and not given back\n"
        }
        return text
    }

    private static func client(_ record: String) -> String {
        ForeignText.printable(RecordName.client(of: record) ?? record)
    }
}
