import Reactor

/// Limits the time that one exchange uses in a turn of the loop. Otherwise a fast upstream could keep the loop busy.
struct TurnShare {
    /// Time for one exchange in a turn, in nanoseconds.
    private static let share: UInt64 = 2_000_000
    /// Length of a turn, in nanoseconds, after which all exchanges wait for the next turn.
    private static let longTurn: UInt64 = 10_000_000

    /// Start of the turn that handled the last piece.
    private var turn = LoopTime(nanoseconds: 0)
    /// Time of the exchange's first piece in that turn.
    private var start: UInt64 = 0
    private var wasDeferred = false

    /// Whether the exchange may go on in this turn.
    /// - Parameter turn: start of the current turn.
    mutating func takesMore(turn: LoopTime, now: LoopTime) -> Bool {
        guard turn == self.turn else {
            self.turn = turn
            start = now.nanoseconds
            // An exchange that begins late in a long turn is deferred once, to the front of the next turn.
            wasDeferred = !wasDeferred && now.nanoseconds &- turn.nanoseconds >= Self.longTurn
            return !wasDeferred
        }
        return now.nanoseconds &- start < Self.share && now.nanoseconds &- turn.nanoseconds < Self.longTurn
    }
}
