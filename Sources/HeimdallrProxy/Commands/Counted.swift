import WireText

extension BinaryInteger {
    /// `1 record`, `2 records`
    func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}

extension Int64 {
    /// The day of a time in seconds since 1970, such as `2026-03-01`.
    var day: String { String(RFC3339.text(Int(clamping: self)).prefix { $0 != "T" }) }
}

extension Duration {
    /// A rounded duration for people: `90 s`, `5 min`, `3 h`, `2 days`.
    var rough: String {
        let seconds = components.seconds
        if seconds < 120 { return "\(seconds) s" }
        if seconds < 7200 { return "\(seconds / 60) min" }
        return seconds < 172_800 ? "\(seconds / 3600) h" : "\(seconds / 86_400) days"
    }
}
