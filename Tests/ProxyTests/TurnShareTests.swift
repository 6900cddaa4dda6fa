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

    @Test func `one piece even when the turn has lasted long`() {
        var share = TurnShare()
        do {
            let takes = takes(&share, time(100), time(150))
            #expect(takes)
        }
        do {
            let takes = takes(&share, time(100), time(150.1))
            #expect(!takes)
        }
        do {
            let takes = takes(&share, time(151), time(200))
            #expect(takes)
        }
    }
}
