import Reactor

/// How much of a turn of the loop one exchange may take: libcurl hands over what an upstream sends for as long as the
/// upstream is faster than we are. The first piece of a turn is taken, but late in a long one, and then in the next: everybody gets on.
struct TurnShare {
    /// For one exchange.
    private static let share: UInt64 = 2_000_000
    /// A turn that lasts longer has had enough of everybody.
    private static let turn: UInt64 = 10_000_000

    /// The turn that the last piece was taken in, by its beginning, and when its first one was.
    private var turn = LoopTime(nanoseconds: 0)
    private var start: UInt64 = 0
    private var isPutOff = false

    /// - Parameters:
    ///   - turn: when the loop woke up.
    ///   - now: asked of the clock.
    mutating func takesMore(turn: LoopTime, now: LoopTime) -> Bool {
        guard turn == self.turn else {
            self.turn = turn
            start = now.nanoseconds
            // A connection that comes late in a long turn is put off, once: its place is in front of the next one.
            isPutOff = !isPutOff && now.nanoseconds &- turn.nanoseconds >= Self.turn
            return !isPutOff
        }
        return now.nanoseconds &- start < Self.share && now.nanoseconds &- turn.nanoseconds < Self.turn
    }
}
