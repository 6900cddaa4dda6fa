import Heimdallr
import PostgresStore

extension OAuthAccessTokenPostgresStore.Report {
    /// For people to read.
    /// - Parameter known: names of the records that the configuration uses.
    func text(known: Set<String>) -> String {
        var text = """
            PostgreSQL \(Self.shown(server)), tables of version \(schema)
            changes are \(isPooled ? "looked for: there is a pooler in between" : "heard")
            \(rows.filter { !$0.isEmpty }.count) records, \(pendingLogins) logins under way

            """
        for row in rows {
            let key = row.isEmpty ? "empty" : row.key.map { "key \($0)" } ?? "sealed with a key that is not configured"
            text += "  \(Self.client(row.client)): revision \(row.revision), \(key), written \(Self.time(row.age)) ago"
            text += known.contains(row.client) ? "\n" : ", not of this configuration: \(Self.shown(row.client))\n"
        }
        if !holders.isEmpty { text += "Leases:\n" }
        for holder in holders {
            let place = holder.address.isEmpty ? "" : " from \(Self.shown(holder.address))"
            text += "  \(Self.client(holder.client)): process \(holder.process) of the server\(place), for "
            text += "\(Self.time(holder.since))\n"
        }
        return text
    }

    private static func client(_ record: String) -> String { shown(RecordName.client(of: record) ?? record) }

    private static func time(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        if seconds < 120 { return "\(seconds) s" }
        if seconds < 7200 { return "\(seconds / 60) min" }
        return seconds < 172_800 ? "\(seconds / 3600) h" : "\(seconds / 86_400) days"
    }

    /// Whoever writes to the database may have put anything there.
    private static func shown(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(100).map { $0.isASCII && ($0.value < 0x20 || $0.value == 0x7F) ? "?" : $0 }))
    }
}
