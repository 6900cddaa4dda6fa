/// A time in a log line: `59s` for people, the number 59 in JSON.
struct LogSeconds: CustomStringConvertible, Sendable {
    let count: Int64

    /// Whole seconds, rounded down, for a remaining time.
    init(_ duration: Duration) { count = duration.components.seconds }

    /// Whole seconds, rounded up, for a waiting time: half a second is not "at once".
    init(roundingUp duration: Duration) {
        count = duration.components.seconds + (duration.components.attoseconds > 0 ? 1 : 0)
    }

    var description: String { "\(count)s" }
}
