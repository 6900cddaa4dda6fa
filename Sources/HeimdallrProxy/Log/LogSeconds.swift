/// A time in a log line: `59s` for people, the number 59 in JSON.
struct LogSeconds: CustomStringConvertible, Sendable {
    let count: Int64

    /// Whole seconds, rounded down: for what is left of something.
    init(_ duration: Duration) { count = duration.components.seconds }

    /// For a time to wait: half a second is not "at once".
    init(roundingUp duration: Duration) {
        count = duration.components.seconds + (duration.components.attoseconds > 0 ? 1 : 0)
    }

    var description: String { "\(count)s" }
}
