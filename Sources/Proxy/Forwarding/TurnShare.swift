import Reactor

/// Limits the time that one exchange takes of a loop's turn: an upstream may send faster than the proxy reads.
struct TurnShare {
    /// Nanoseconds for one exchange.
    private static let share: UInt64 = 2_000_000
    /// Nanoseconds after which a turn defers new work.
    private static let turn: UInt64 = 10_000_000

    /// Begin of the turn with the last piece.
    private var turn = LoopTime(nanoseconds: 0)
    private var start: UInt64 = 0
    private var isPutOff = false

    /// - Parameters:
    ///   - turn: begin of the current turn.
    ///   - now: the current time.
    mutating func takesMore(turn: LoopTime, now: LoopTime) -> Bool {
        guard turn == self.turn else {
            self.turn = turn
            start = now.nanoseconds
            // A connection late in a long turn is deferred once, to the front of the next turn.
            isPutOff = !isPutOff && now.nanoseconds &- turn.nanoseconds >= Self.turn
            return !isPutOff
        }
        return now.nanoseconds &- start < Self.share && now.nanoseconds &- turn.nanoseconds < Self.turn
    }
}
