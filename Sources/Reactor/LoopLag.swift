/// A histogram of an event loop's delays: the time that a new event waits until the loop handles it.
///
/// After a turn with events, the loop plans a measurement: a wake-up 100 ms later, whose delay it counts. An idle loop
/// plans none, so that its process sleeps. Belongs to the loop's thread; copies may go to other threads.
public struct LoopLag: Sendable, Equatable {
    /// Upper bounds of the buckets in nanoseconds, ascending. Smaller bounds would be useless, because epoll_wait(2)
    /// counts in milliseconds.
    public static let bounds: [UInt64] = [
        2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000,
    ].map { $0 * 1_000_000 }

    static let interval: UInt64 = 100_000_000

    /// Counts of the buckets, and last the count of longer delays. Each delay is counted in one bucket only.
    public private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// Sum of all delays.
    public private(set) var nanoseconds: UInt64 = 0
    /// Planned time of the next measurement; `.max` for none.
    private(set) var due = LoopTime(nanoseconds: .max)

    /// Counts the delay if a measurement is due, and plans the next one if needed.
    @inline(__always) mutating func woke(at now: LoopTime, hasEvents: Bool) {
        if due <= now {
            record(now.nanoseconds - due.nanoseconds)
        } else if !hasEvents || due.nanoseconds != .max {
            return
        }
        due = hasEvents ? now.advanced(by: Self.interval) : LoopTime(nanoseconds: .max)
    }

    private mutating func record(_ lag: UInt64) {
        counts[Self.bounds.firstIndex { lag <= $0 } ?? Self.bounds.count] &+= 1
        nanoseconds &+= lag
    }
}
