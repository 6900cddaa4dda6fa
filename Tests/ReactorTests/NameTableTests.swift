@testable import Reactor
import Testing

@Suite("who gets a place for a name look-up")
struct NameTableTests {
    private typealias Table = NameTable<String>
    private static let one = NameAnswer.success([NumericAddress(ipv4: 0x0909_0909)])
    private static let none = NameAnswer.failure(NameError("no such name"))

    private static func time(_ milliseconds: UInt64) -> LoopTime { LoopTime(nanoseconds: milliseconds * 1_000_000) }

    /// The outcome of a look-up, in a word.
    private func ask(
        _ table: inout Table, _ name: String, _ id: UInt64, strange: Bool = false, at milliseconds: UInt64 = 0
    ) -> String {
        switch table.ask(name, isFromClient: strange, id: id, asker: "\(id)", now: Self.time(milliseconds)) {
        case .known(.success): "found"
        case .known(.failure): "failed"
        case .pending(true): "begins"
        case .pending(false): "waits"
        case .refused: "refused"
        }
    }

    @Test func `who asks for the same name shares one look-up`() {
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

    @Test func `what is kept is bounded`() {
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

    @Test func `names that hang leave places to other zones, and strangers' names to the configuration's`() {
        var limits = Table.Limits()
        limits.slots = 4
        limits.slotsOfClientNames = 3
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

    @Test func `strangers never have more than their part`() {
        var limits = Table.Limits()
        limits.slots = 4
        limits.slotsOfClientNames = 2
        var table = Table(limits)
        #expect(ask(&table, "a.one", 1, strange: true) == "begins")
        #expect(ask(&table, "a.two", 2, strange: true) == "begins")
        #expect(ask(&table, "a.three", 3, strange: true) == "waits")
        // The configuration's own name does not wait for them, even where a stranger asked for it first.
        #expect(ask(&table, "a.three", 4) == "begins")
        #expect(ask(&table, "a.four", 5) == "begins")
        #expect(ask(&table, "a.five", 6) == "waits")
    }

    @Test func `whoever leaves the queue is forgotten, and a look-up that nobody waits for goes on`() {
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

    @Test func `askers are bounded, whoever they ask for`() {
        var limits = Table.Limits()
        limits.askers = 2
        var table = Table(limits)
        #expect(ask(&table, "a.test", 1) == "begins")
        #expect(ask(&table, "a.test", 2) == "waits")
        #expect(ask(&table, "a.test", 3) == "refused")
        _ = table.finish("a.test", Self.one, now: Self.time(0))
        #expect(ask(&table, "b.test", 3) == "begins")
    }
}
