/// Durations as text, for code outside this target.
package enum DurationText {
    package struct Fault: Error, Equatable { package let sentence: String }

    /// Reads a duration in the configuration's notation: `500ms`, `30s`, `5m` or `1h`.
    package static func read(_ text: String, _ range: ClosedRange<Duration>) throws(Fault) -> Duration {
        do throws(BadValue) { return try Grammar.duration(range)(text) } catch { throw Fault(sentence: error.message) }
    }

    /// Writes a duration for people, rounded up to seconds: `9m 58s`. A negative duration becomes `0s`.
    package static func show(_ duration: Duration) -> String {
        let (whole, rest) = duration.components
        let seconds = max(0, whole + (rest > 0 ? 1 : 0))
        let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")].filter { $0.0 > 0 }
        return parts.isEmpty ? "0s" : parts.map { "\($0.0)\($0.1)" }.joined(separator: " ")
    }
}
