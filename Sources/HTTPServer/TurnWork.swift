import Reactor

/// Work for the requests of many connections in one turn of the loop, in bytes: a connection that becomes readable late
/// in a long turn waits for the next one.
struct TurnWork {
    private static let limit = 1 << 20

    private var turn = LoopTime(nanoseconds: 0)
    private var done = 0

    func isFull(in turn: LoopTime) -> Bool { done >= Self.limit && self.turn == turn }

    mutating func add(_ work: Int, in turn: LoopTime) {
        if self.turn != turn { (self.turn, done) = (turn, 0) }
        done += work
    }
}
