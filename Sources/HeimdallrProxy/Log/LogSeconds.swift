/// A time in a log line: `59s` for people, the number 59 in JSON.
struct LogSeconds: CustomStringConvertible, Sendable {
    /// Whole seconds, rounded down.
    let count: Int64

    init(_ duration: Duration) { count = duration.components.seconds }

    var description: String { "\(count)s" }
}
