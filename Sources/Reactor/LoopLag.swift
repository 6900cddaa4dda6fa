/// How late an event loop comes to what is due, counted by size: what anything that arrives then has to wait.
///
/// With an event the loop notes a moment a little later at which it means to look again, and counts by how much it
/// misses it. A loop without events notes none, so that nothing wakes it while it is idle. A value of the loop's thread;
/// copies may go anywhere.
public struct LoopLag: Sendable, Equatable {
    /// Upper bounds of the buckets in nanoseconds, rising. The first is the finest that epoll_wait(2) can tell, which
    /// counts in milliseconds.
    public static let bounds: [UInt64] = [
        2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000,
    ].map { $0 * 1_000_000 }

    static let interval: UInt64 = 100_000_000

    /// One more than bounds; each value in one bucket only.
    public private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// Of all values together.
    public private(set) var nanoseconds: UInt64 = 0
    /// When it means to look again; `.max`: it does not.
    private(set) var due = LoopTime(nanoseconds: .max)

    /// The loop woke up.
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
