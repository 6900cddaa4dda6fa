import Reactor

/// Two allowances against floods, for useless frames and for streams that end in a reset. A spent allowance ends the
/// connection. Both grow with time. The first also grows with bodies, the second with streams that end in order.
/// Bodies do not pay for resets: a byte of a body costs the peer less than the start of a stream costs us.
struct FrameBudget {
    /// Size of each allowance: this number of frames, or a fourth of this number of resets.
    private static let burst = 2_000
    /// Growth of each allowance per second.
    private static let rate: UInt64 = 200
    /// Cost of a reset, in the units of the allowance.
    private static let reset = 4

    private var left = FrameBudget.burst
    private var leftForResets = FrameBudget.burst
    private var time: LoopTime

    init(at time: LoopTime) { self.time = time }

    var isSpent: Bool { left < 0 || leftForResets < 0 }

    mutating func refill(at now: LoopTime) {
        guard now > time else { return }
        let elapsed = now.nanoseconds - time.nanoseconds
        guard elapsed >= 1_000_000_000 / Self.rate else { return }
        time = now
        let count = Int(min(elapsed / (1_000_000_000 / Self.rate), UInt64(Self.burst)))
        earn(count)
        leftForResets = min(leftForResets + count, Self.burst)
    }

    mutating func earn(_ count: Int) { left = min(left + count, Self.burst) }

    mutating func spend(_ count: Int) { if left >= 0 { left -= count } }

    /// Notes a stream that ended in a reset.
    mutating func noteReset() { if leftForResets >= 0 { leftForResets -= Self.reset } }

    /// Notes a stream that ended in order.
    mutating func noteEnd() { leftForResets = min(leftForResets + Self.reset, Self.burst) }
}
