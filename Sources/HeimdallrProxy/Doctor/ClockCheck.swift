import WireText

/// Compares this machine's clock with a server's.
enum ClockCheck {
    /// Differences in seconds that are a warning, and that are a failure: tokens and signatures depend on the time.
    private static let (notice, limit): (Int64, Int64) = (30, 300)

    /// - Parameters:
    ///   - date: the answer's Date field (RFC 9110, section 6.6.1).
    ///   - age: its Age field: an answer of a cache.
    ///   - now: its arrival, in seconds since 1970-01-01T00:00:00Z.
    static func finding(date: String?, age: String?, now: Int64) -> Finding {
        guard let date else { return .skipped("clock", "the server's answer has no Date field") }
        guard let other = HTTPDate.seconds(Array(date.utf8)) else {
            return .skipped("clock", "the server's Date field is no date")
        }
        guard age == nil || age == "0" else { return .skipped("clock", "the answer came out of a cache") }
        let distance = abs(now - other)
        guard distance > notice else {
            return .good("clock", distance <= 1 ? "agrees with the server's" : "\(distance) s from the server's")
        }
        let text =
            "this machine's clock is \(Duration.seconds(distance).rough) \(now > other ? "ahead of" : "behind") the server's "
            + "(\(RFC3339.text(Int(clamping: other))))"
        let advice =
            "set this machine's clock, by NTP best (timedatectl shows it); if it is right, tell whoever runs the server"
        return distance > limit ? .failed("clock", text, advice) : .warning("clock", text, advice)
    }
}
