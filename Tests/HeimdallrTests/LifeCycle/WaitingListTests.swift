import Testing

@testable import Heimdallr

@Suite struct `Who waits for a token` {
    private let begin = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { begin + .seconds(seconds) }

    @Test("each leaves at their own time, and once")
    func deadlines() {
        var list = WaitingList()
        #expect(list.earliestDeadline == nil)
        for (id, seconds) in [(1, 5.0), (2, 3), (3, 9)] as [(UInt64, Double)] {
            list.add(id, until: at(seconds), insteadOf: nil)
        }
        #expect(list.earliestDeadline == at(3))
        #expect(list.removeOverdue(at: at(2)) == [])
        let overdue = list.removeOverdue(at: at(5))
        #expect(overdue.sorted() == [1, 2])
        #expect(list.earliestDeadline == at(9))
        #expect(list.remove(1) == false)
        #expect(list.remove(3) == true)
        #expect(list.isEmpty)
        #expect(list.removeOverdue(at: at(10)) == [])
        #expect(list.removeAll() == [])
    }

    @Test("some leave by what they wait for, the others stay")
    func some() {
        var list = WaitingList()
        list.add(1, until: at(5), insteadOf: nil)
        list.add(2, until: at(3), insteadOf: 7)
        list.add(3, until: at(4), insteadOf: 8)
        let leaving = list.removeAll { $0.unwanted != nil }
        #expect(leaving.sorted() == [2, 3])
        #expect(list.earliestDeadline == at(5))
        #expect(Array(list.keys) == [1])
        #expect(list.removeAll() == [1])
        #expect(list.earliestDeadline == nil)
        #expect(list.count == 0)
    }
}
