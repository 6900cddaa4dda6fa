/// A histogram of an event loop's delays: the time that a new event waits for the loop.
///
/// With an event the loop plans its next look a little later, and counts the delay of that look. A loop without events
/// plans none, so that an idle process sleeps. A value of the loop's thread; copies may go to other threads.
public struct LoopLag: Sendable, Equatable {
    /// Upper bounds of the buckets in nanoseconds, rising. The first one is the smallest step of epoll_wait(2), which
    /// counts in milliseconds.
    public static let bounds: [UInt64] = [
        2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000,
    ].map { $0 * 1_000_000 }

    static let interval: UInt64 = 100_000_000

    /// One element more than `bounds`. Each delay is counted in one bucket only.
    public private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// Sum of all delays.
    public private(set) var nanoseconds: UInt64 = 0
    /// Time of the next look; `.max` for none.
    private(set) var due = LoopTime(nanoseconds: .max)

    /// Counts the delay, if a look was planned, and plans the next one.
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
