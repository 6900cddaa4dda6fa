import Reactor
import Testing

@testable import Proxy

@Suite("an exchange's share of a turn of the loop")
struct TurnShareTests {
    private func time(_ milliseconds: Double) -> LoopTime { LoopTime(nanoseconds: UInt64(milliseconds * 1_000_000)) }

    private func answers(_ times: [(turn: Double, now: Double)]) -> [Bool] {
        var share = TurnShare()
        return times.map { share.takesMore(turn: time($0.turn), now: time($0.now)) }
    }

    @Test func `a connection has two milliseconds of a turn from its first piece on`() {
        #expect(answers([(100, 101), (100, 102.9), (100, 103), (104, 105)]) == [true, true, false, true])
    }

    @Test func `a connection that comes late in a long turn is put off once, and takes one piece in the next`() {
        let answers = answers([(100, 150), (151, 200), (151, 200.1), (201, 250), (251, 300)])
        #expect(answers == [false, true, false, false, true])
    }
}
