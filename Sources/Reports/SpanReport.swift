/// What became of spans since the start.
public struct SpanReport: Sendable, Equatable {
    /// Why a span was lost. The raw values are a metric's label.
    public enum Loss: String, Sendable, Hashable, CaseIterable {
        /// So many were waiting already.
        case queueFull = "queue_full"
        /// The collector was out of reach, or busy, for too long.
        case unreachable
        /// It refused the whole batch, or its answer could not be read.
        case refused
        /// It took the others of the batch.
        case rejected
        /// They were still waiting when the proxy stopped, or when `tracing` had changed.
        case stopped
    }

    /// The collector has taken them.
    public var exported: UInt64 = 0
    public var dropped: [Loss: UInt64] = [:]

    public init() {}

    public var allDropped: UInt64 { dropped.values.reduce(0, &+) }
}
