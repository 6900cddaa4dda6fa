import Reactor

/// Allowance for frames that move no message on: a flood of them ends the connection. It grows with time and with
/// the bodies that pass.
struct FrameBudget {
    /// Frames at once.
    private static let burst = 2_000
    /// Frames a second.
    private static let rate: UInt64 = 200
    /// Cost of a stream that ends in a reset. Starting it cost more than a frame.
    static let reset = 4

    private var left = FrameBudget.burst
    private var time: LoopTime

    init(at time: LoopTime) { self.time = time }

    var isSpent: Bool { left < 0 }

    mutating func refill(at now: LoopTime) {
        guard now > time else { return }
        let elapsed = now.nanoseconds - time.nanoseconds
        guard elapsed >= 1_000_000_000 / Self.rate else { return }
        time = now
        earn(Int(min(elapsed / (1_000_000_000 / Self.rate), UInt64(Self.burst))))
    }

    mutating func earn(_ count: Int) { left = min(left + count, Self.burst) }

    mutating func spend(_ count: Int) { if left >= 0 { left -= count } }
}
