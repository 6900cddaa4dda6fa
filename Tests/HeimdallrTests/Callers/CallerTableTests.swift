import Cryptography
import Testing

@testable import Heimdallr

@Suite struct `Callers, as a table holds them` {
    private typealias Table = CallerTable<Int>
    private let start = ContinuousClock.now

    private func caller(_ number: Int) throws -> Fingerprint { try Fingerprint(Array("\(number)".utf8).span) }

    @Test("a full table lets go of callers without a token first, then of those absent the longest")
    func victims() throws {
        var table = Table()
        for number in 0..<Table.capacity {
            table.add(
                number, try caller(number), size: 1, endsAt: nil, now: start + .seconds(number), hasToken: { _ in true }
            )
        }
        // The first one comes again.
        _ = try table.entry(of: try caller(0), now: start + .seconds(5000))
        table.add(9000, try caller(9000), size: 1, endsAt: nil, now: start + .seconds(5001)) { $0 != 700 }
        #expect(table.count == Table.capacity)
        #expect(try table.entry(of: try caller(700), now: start) == nil)
        table.add(9001, try caller(9001), size: 1, endsAt: nil, now: start + .seconds(5002)) { _ in true }
        #expect(try table.entry(of: try caller(1), now: start) == nil)
        #expect(try table.entry(of: try caller(0), now: start)?.client == 0)
        #expect(try table.entry(of: try caller(9000), now: start)?.client == 9000)
    }

    @Test("the tokens of all callers together stay within a bound")
    func bytes() throws {
        var table = Table()
        for number in 0..<Table.capacity {
            table.add(number, try caller(number), size: 16 * 1024, endsAt: nil, now: start) { _ in true }
            #expect(table.bytes <= Table.maxBytes)
        }
        #expect(table.count == Table.maxBytes / (16 * 1024))
        table.removeAll()
        #expect(table.bytes == 0)
    }

    @Test("a caller with a token stays while it is good, one without for five minutes, nobody beyond their own end")
    func sweeping() throws {
        var table = Table()
        table.add(1, try caller(1), size: 1, endsAt: nil, now: start) { _ in true }
        table.add(2, try caller(2), size: 1, endsAt: nil, now: start) { _ in true }
        table.add(3, try caller(3), size: 1, endsAt: start + .seconds(10), now: start) { _ in true }
        table.sweep(now: start + .seconds(9)) { $0 == 1 }
        #expect(table.count == 3)
        table.sweep(now: start + .seconds(10)) { $0 == 1 }
        #expect(Set(table.clients) == [1, 2])
        table.sweep(now: start + .seconds(300)) { $0 == 1 }
        #expect(table.clients == [1])
        table.add(4, try caller(4), size: 1, endsAt: start + .seconds(400), now: start) { _ in true }
        #expect(throws: CallerRefusal.expired) {
            try table.entry(of: try caller(4), now: start + .seconds(400))
        }
        #expect(table.count == 1 && table.bytes == 1)
    }

    @Test("only callers whose exchange has not succeeded are bounded in time")
    func maxNew() throws {
        var table = Table()
        // Callers who are good for something are no guesses.
        for number in 0..<(3 * Table.maxNew) {
            try table.admitNew(now: start)
            table.add(number, try caller(number), size: 1, endsAt: nil, now: start) { _ in true }
            table.succeeded(try caller(number), now: start)
            table.succeeded(try caller(number), now: start)
        }
        for _ in 0..<Table.maxNew { try table.admitNew(now: start) }
        #expect(throws: CallerRefusal.tooManyNew(retryAfter: Table.newPause)) { try table.admitNew(now: start) }
        try table.admitNew(now: start + Table.newPause)
        #expect(throws: CallerRefusal.self) { try table.admitNew(now: start + Table.newPause) }
    }
}

@Suite struct `The end of a caller's own token` {
    @Test(
        "the end of a caller's own token is its exp where it is a JWT in the clear, and nothing else",
        arguments: [
            // {"exp":1000}, {"exp":1e3}, {"exp":1e400}, {"exp":"1000"}, [], not JSON, and no JWT at all.
            ("a.eyJleHAiOjEwMDB9.c", 500.0), ("a.eyJleHAiOjFlM30.", 500.0), ("a.eyJleHAiOjFlNDAwfQ.c", nil),
            ("a.eyJleHAiOiIxMDAwIn0.c", nil), ("a.W10.c", nil), ("a.eA.c", nil), ("a.!.c", nil), ("opaque", nil),
            ("a.eyJleHAiOjEwMDB9", nil), ("..", nil), ("", nil), ("a.b.c.d.e", nil),
        ])
    func end(_ token: String, _ left: Double?) {
        #expect(TokenEnd.secondsLeft(of: Secret(token), wallClock: 500) == left)
    }
}
