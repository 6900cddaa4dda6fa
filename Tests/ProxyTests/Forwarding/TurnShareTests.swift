import Reactor
import Testing

@testable import Proxy

@Suite("an exchange's share of a turn of the loop")
struct TurnShareTests {
    private func time(_ milliseconds: Double) -> LoopTime { LoopTime(nanoseconds: UInt64(milliseconds * 1_000_000)) }

    private func takes(_ share: inout TurnShare, _ turn: LoopTime, _ now: LoopTime) -> Bool {
        share.takesMore(turn: turn, now: now)
    }

    @Test func `two milliseconds from its first piece on`() {
        var share = TurnShare()
        do {
            let takes = takes(&share, time(100), time(101))
            #expect(takes)
        }
        do {
            let takes = takes(&share, time(100), time(102.9))
            #expect(takes)
        }
        do {
            let takes = takes(&share, time(100), time(103))
            #expect(!takes)
        }
        do {
            let takes = takes(&share, time(104), time(105))
            #expect(takes)
        }
    }

    @Test func `who comes late in a long turn is put off once, and takes one piece in the next`() {
        var share = TurnShare()
        let answers = [(100, 150), (151, 200), (151, 200.1), (201, 250), (251, 300)].map {
            takes(&share, time($0.0), time($0.1))
        }
        #expect(answers == [false, true, false, false, true])
    }
}
