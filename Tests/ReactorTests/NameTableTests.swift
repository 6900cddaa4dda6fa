@testable import Reactor
import Testing

@Suite("who gets a place for a name look-up")
struct NameTableTests {
    private static let one = NameAnswer.success([NumericAddress(ipv4: 0x0909_0909)])
    private static let six = NameAnswer.success([NumericAddress(high: 9, low: 9)])
    private static let both = NameAnswer.success([
        NumericAddress(high: 9, low: 9), NumericAddress(ipv4: 0x0909_0909),
    ])
    private static let none = NameAnswer.failure(NameError("no such name", isFinal: true))
    private static let silence = NameAnswer.failure(NameError("temporary failure"))

    private static func time(_ milliseconds: UInt64) -> LoopTime { LoopTime(nanoseconds: milliseconds * 1_000_000) }

    /// A table, and the look-ups that it began and that have not ended, oldest first.
    private struct Table {
        typealias Limits = NameLimits

        var table: NameTable<String>
        var running: [NameAttempt] = []

        init(_ limits: Limits = Limits()) { table = NameTable(limits) }

        /// The look-ups of a name that run, by their families.
        func families(_ name: String) -> [NameAttempt.Family] {
            running.compactMap { $0.name == name ? $0.family : nil }
        }

        mutating func leave(_ name: String, id: UInt64) { table.leave(name, id: id) }

        /// Ends the oldest look-up of this name and family.
        mutating func finish(
            _ name: String, _ family: NameAttempt.Family, _ answer: NameAnswer, now: LoopTime
        ) -> (askers: [String], answers: [NameAnswer], starts: [String], delays: Bool) {
            guard let index = running.firstIndex(where: { $0.name == name && $0.family == family }) else {
                return ([], [], [], false)
            }
            return note(table.finish(running.remove(at: index), answer, now: now))
        }

        mutating func finish(
            _ name: String, _ answer: NameAnswer, now: LoopTime
        ) -> (askers: [String], answers: [NameAnswer], starts: [String], delays: Bool) {
            finish(name, .both, answer, now: now)
        }

        mutating func note(
            _ step: NameTable<String>.Step
        ) -> (askers: [String], answers: [NameAnswer], starts: [String], delays: Bool) {
            running += step.starts
            return (step.answers.map(\.asker), step.answers.map(\.answer), step.starts.map(\.name), step.delays)
        }
    }

    /// The outcome of a look-up, in a word.
    private func ask(
        _ table: inout Table, _ name: String, _ id: UInt64, strange: Bool = false, at milliseconds: UInt64 = 0
    ) -> String {
        switch table.table.ask(name, isFromProgram: strange, id: id, asker: "\(id)", now: Self.time(milliseconds)) {
        case .known(let answer, let starts):
            table.running += starts
            return (try? answer.get()) == nil ? "failed" : "found"
        case .pending(let starts):
            table.running += starts
            return starts.isEmpty ? "waits" : "begins"
        case .refused: return "refused"
        }
    }

    @Test func `callers that look up the same name share one look-up`() {
        var table = Table()
        #expect(ask(&table, "a.test", 1) == "begins")
        #expect(ask(&table, "a.test", 2) == "waits")
        #expect(ask(&table, "b.test", 3) == "begins")
        let done = table.finish("a.test", Self.one, now: Self.time(10))
        #expect(done.askers.sorted() == ["1", "2"])
        #expect(done.starts.isEmpty)
        // Told once.
        #expect(table.finish("a.test", Self.one, now: Self.time(10)).askers.isEmpty)
    }

    @Test func `an answer is kept for five seconds, a failure for one`() {
        var table = Table()
        for name in ["good.test", "bad.test"] {
            _ = ask(&table, name, 1)
            _ = table.finish(name, name == "good.test" ? Self.one : Self.none, now: Self.time(0))
        }
        #expect(ask(&table, "bad.test", 2, at: 999) == "failed")
        #expect(ask(&table, "bad.test", 2, at: 1000) == "begins")
        #expect(ask(&table, "good.test", 2, at: 4999) == "found")
        #expect(ask(&table, "good.test", 2, at: 5000) == "begins")
    }

    @Test func `the number of kept answers is bounded`() {
        var limits = Table.Limits()
        limits.answers = 3
        var table = Table(limits)
        for (number, name) in ["a", "b", "c", "d"].enumerated() {
            _ = ask(&table, name, 1)
            _ = table.finish(name, Self.one, now: Self.time(UInt64(number)))
        }
        #expect(ask(&table, "a", 2, at: 5) == "begins")
        #expect(ask(&table, "d", 2, at: 5) == "found")
    }

    @Test func `names that hang leave slots to other zones, and strangers' names to the configuration's`() {
        var limits = Table.Limits()
        limits.slots = 4
        limits.slotsOfProgramNames = 3
        limits.slotsOfZone = 2
        var table = Table(limits)
        #expect(ask(&table, "1.evil.test", 1, strange: true) == "begins")
        #expect(ask(&table, "2.evil.test", 2, strange: true) == "begins")
        #expect(ask(&table, "3.evil.test", 3, strange: true) == "waits")
        #expect(ask(&table, "x.EVIL.test.", 4) == "begins", "names come in small letters")
        #expect(ask(&table, "good.example", 5) == "begins")
        // Full.
        #expect(ask(&table, "other.example", 6) == "waits")
        let done = table.finish("good.example", Self.one, now: Self.time(1))
        #expect(done.askers == ["5"])
        #expect(done.starts == ["other.example"])
        #expect(table.finish("2.evil.test", Self.none, now: Self.time(2)).starts == ["3.evil.test"])
    }

    @Test func `strangers never have more than their share of look-ups`() {
        var limits = Table.Limits()
        limits.slots = 4
        limits.slotsOfProgramNames = 2
        var table = Table(limits)
        #expect(ask(&table, "a.one", 1, strange: true) == "begins")
        #expect(ask(&table, "a.two", 2, strange: true) == "begins")
        #expect(ask(&table, "a.three", 3, strange: true) == "waits")
        // The configuration's own name does not wait for them, even where a stranger asked for it first.
        #expect(ask(&table, "a.three", 4) == "begins")
        #expect(ask(&table, "a.four", 5) == "begins")
        #expect(ask(&table, "a.five", 6) == "waits")
    }

    @Test func `a caller that leaves the queue is forgotten, and a look-up that nobody waits for goes on`() {
        var limits = Table.Limits()
        limits.slots = 1
        limits.queue = 2
        var table = Table(limits)
        #expect(ask(&table, "a.one", 1) == "begins")
        #expect(ask(&table, "a.two", 2) == "waits")
        #expect(ask(&table, "a.three", 3) == "waits")
        #expect(ask(&table, "a.four", 4) == "refused")
        table.leave("a.two", id: 2)
        table.leave("a.two", id: 2)
        #expect(ask(&table, "a.four", 4) == "waits")
        table.leave("a.one", id: 1)
        let done = table.finish("a.one", Self.one, now: Self.time(0))
        #expect(done.askers.isEmpty)
        #expect(done.starts == ["a.three"])
        #expect(ask(&table, "a.one", 5) == "found")
    }

    @Test func `the number of waiting callers is bounded, whatever they look up`() {
        var limits = Table.Limits()
        limits.askers = 2
        var table = Table(limits)
        #expect(ask(&table, "a.test", 1) == "begins")
        #expect(ask(&table, "a.test", 2) == "waits")
        #expect(ask(&table, "a.test", 3) == "refused")
        _ = table.finish("a.test", Self.one, now: Self.time(0))
        #expect(ask(&table, "b.test", 3) == "begins")
    }

    // MARK: Name servers that are silent, and answers that came late

    @Test func `a look-up that takes long is not shared with new questions, and its end does not replace theirs`() {
        var table = Table()
        #expect(ask(&table, "a.test", 1) == "begins")
        #expect(ask(&table, "a.test", 2, at: 499) == "waits")
        table.leave("a.test", id: 1)
        table.leave("a.test", id: 2)
        #expect(ask(&table, "a.test", 3, at: 5000) == "begins")
        let old = table.running.removeFirst()
        let done = table.finish("a.test", Self.one, now: Self.time(5010))
        #expect(done.askers == ["3"] && done.answers == [Self.one])
        // The old look-up ends at last.
        #expect(table.note(table.table.finish(old, Self.none, now: Self.time(5020))).askers.isEmpty)
        #expect(ask(&table, "a.test", 4, at: 5030) == "found")
    }

    @Test func `look-ups of a name that hang are few, and leave half of the slots to other names`() {
        var limits = Table.Limits()
        limits.slots = 8
        var table = Table(limits)
        for round in 0..<20 { _ = ask(&table, "a.test", UInt64(round), at: UInt64(round) * 1000) }
        #expect(table.running.count == 4)
        limits.slots = 100
        table = Table(limits)
        for round in 0..<20 { _ = ask(&table, "a.test", UInt64(round), at: UInt64(round) * 1000) }
        #expect(table.running.count == limits.slotsOfName)
    }

    @Test func `when the system's resolver changes, all look-ups begin anew, and old ones take no slot`() {
        var limits = Table.Limits()
        limits.slots = 2
        limits.threads = 5
        var table = Table(limits)
        #expect(ask(&table, "a.test", 1) == "begins")
        #expect(ask(&table, "b.test", 2) == "begins")
        #expect(ask(&table, "c.test", 3) == "waits")
        table.leave("b.test", id: 2)
        let old = table.running
        table.running = []
        let changed = table.note(table.table.systemChanged(now: Self.time(100)))
        #expect(changed.starts.sorted() == ["a.test", "c.test"])
        // An old answer is that of the former name server.
        #expect(table.note(table.table.finish(old[0], Self.six, now: Self.time(110))).askers.isEmpty)
        let done = table.finish("a.test", Self.one, now: Self.time(120))
        #expect(done.askers == ["1"] && done.answers == [Self.one])
        // Threads are bounded, however often it changes: two are old, then four.
        _ = table.note(table.table.systemChanged(now: Self.time(130)))
        _ = ask(&table, "d.test", 5, at: 131)
        _ = ask(&table, "e.test", 6, at: 131)
        _ = table.note(table.table.systemChanged(now: Self.time(140)))
        #expect(table.running.count + 1 <= limits.threads)
    }

    @Test func `a changed resolver makes known answers stale, and forgets failures`() {
        var table = Table()
        for (name, answer) in [("good.test", Self.one), ("bad.test", Self.none)] {
            _ = ask(&table, name, 1)
            _ = table.finish(name, answer, now: Self.time(0))
        }
        _ = table.note(table.table.systemChanged(now: Self.time(1)))
        #expect(ask(&table, "good.test", 2, at: 2) == "begins")
        #expect(ask(&table, "bad.test", 3, at: 2) == "begins")
    }

    @Test func `the last good addresses serve while no server answers, for an hour, but not after a server's no`() {
        var table = Table()
        _ = ask(&table, "a.test", 1)
        _ = table.finish("a.test", Self.one, now: Self.time(0))
        // Silence: they answer after half a second, and at once as long as the look-up hangs.
        #expect(ask(&table, "a.test", 2, at: 10_000) == "begins")
        let late = table.note(table.table.waitedLong("a.test", id: 2, now: Self.time(10_500)))
        #expect(late.askers == ["2"] && late.answers == [Self.one])
        #expect(ask(&table, "a.test", 3, at: 10_600) == "found")
        // An error that may pass: they answer again.
        #expect(table.finish("a.test", Self.silence, now: Self.time(11_000)).askers.isEmpty)
        for family in table.families("a.test") {
            _ = table.finish("a.test", family, Self.silence, now: Self.time(12_000))
        }
        #expect(ask(&table, "a.test", 4, at: 14_000) == "begins")
        for family in table.families("a.test") { _ = table.finish("a.test", family, Self.none, now: Self.time(14_100)) }
        #expect(ask(&table, "a.test", 5, at: 14_200) == "failed", "the server says that there is no such name")

        var other = Table()
        _ = ask(&other, "a.test", 1)
        _ = other.finish("a.test", Self.one, now: Self.time(0))
        #expect(ask(&other, "a.test", 2, at: 3_600_000) == "begins")
        #expect(other.note(other.table.waitedLong("a.test", id: 2, now: Self.time(3_600_500))).askers.isEmpty)
        #expect(other.finish("a.test", Self.silence, now: Self.time(3_601_000)).askers.isEmpty)
        #expect(other.families("a.test") == [.ipv4, .ipv6], "the question still waits for these")
    }

    // MARK: RFC 8305, section 3

    @Test func `a server that drops AAAA costs half a second once, and then the resolution delay`() {
        var table = Table()
        #expect(ask(&table, "a.test", 1) == "begins")
        #expect(table.families("a.test") == [.both])
        #expect(table.note(table.table.waitedLong("a.test", id: 1, now: Self.time(500))).askers.isEmpty)
        #expect(table.families("a.test") == [.both, .ipv4, .ipv6])
        let four = NameAttempt(name: "a.test", family: .ipv4, id: 0)
        #expect(table.finish("a.test", .ipv4, Self.one, now: Self.time(501)).delays)
        let done = table.note(table.table.delayEnded(four, now: Self.time(551)))
        #expect(done.askers == ["1"] && done.answers == [Self.one])
        #expect(ask(&table, "a.test", 2, at: 5_000) == "found")
        // The next look-up asks for each family at once.
        #expect(table.finish("a.test", Self.silence, now: Self.time(10_000)).askers.isEmpty)
        #expect(table.finish("a.test", .ipv6, Self.silence, now: Self.time(10_500)).askers.isEmpty)
        #expect(ask(&table, "a.test", 3, at: 20_000) == "begins")
        #expect(table.families("a.test") == [.ipv4, .ipv6])
        #expect(table.finish("a.test", .ipv4, Self.one, now: Self.time(20_001)).delays)
        #expect(table.note(table.table.delayEnded(four, now: Self.time(20_051))).askers == ["3"])
        // It answers both again.
        let late = table.finish("a.test", .ipv6, Self.six, now: Self.time(20_060))
        #expect(late.askers.isEmpty)
        #expect(
            table.table.ask("a.test", isFromProgram: false, id: 4, asker: "4", now: Self.time(20_070)).known
                == Self.both
        )
    }

    @Test func `an AAAA answer in time goes with the A answer, an AAAA answer alone needs no delay`() {
        for first in [NameAttempt.Family.ipv4, .ipv6] {
            var table = Table()
            _ = ask(&table, "a.test", 1)
            _ = table.note(table.table.waitedLong("a.test", id: 1, now: Self.time(500)))
            if first == .ipv4 {
                #expect(table.finish("a.test", .ipv4, Self.one, now: Self.time(501)).delays)
                #expect(table.finish("a.test", .ipv6, Self.six, now: Self.time(510)).answers == [Self.both])
            } else {
                #expect(table.finish("a.test", .ipv6, Self.six, now: Self.time(501)).answers == [Self.six])
            }
        }
    }

    @Test func `a name without one of the families waits for the other`() {
        var table = Table()
        _ = ask(&table, "a.test", 1)
        _ = table.note(table.table.waitedLong("a.test", id: 1, now: Self.time(500)))
        #expect(table.finish("a.test", .ipv4, Self.none, now: Self.time(501)).askers.isEmpty)
        #expect(table.finish("a.test", .ipv6, Self.six, now: Self.time(900)).answers == [Self.six])
    }
}

extension NameTable.Reply {
    fileprivate var known: NameAnswer? { if case .known(let answer, _) = self { answer } else { nil } }
}
