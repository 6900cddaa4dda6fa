/// Counts of exported and lost spans since the start.
public struct SpanReport: Sendable, Equatable {
    /// Reason for losing a span. The raw values are values of a metric's label.
    public enum Loss: String, Sendable, Hashable, CaseIterable {
        /// The queue was full.
        case queueFull = "queue_full"
        /// The collector was unreachable or busy for too long.
        case unreachable
        /// The collector refused the whole batch, or its answer was unreadable.
        case refused
        /// The collector accepted other spans of the batch, but not this one.
        case rejected
        /// The span was waiting when the proxy stopped, or when `tracing` changed.
        case stopped
    }

    /// Spans that the collector accepted.
    public var exported: UInt64 = 0
    public var dropped: [Loss: UInt64] = [:]

    public init() {}

    public var allDropped: UInt64 { dropped.values.reduce(0, &+) }
}
