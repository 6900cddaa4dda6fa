import Testing

@testable import PostgresStore

@Suite struct `Whether the database can be reached` {
    private let start = ContinuousClock.now
    private let fault = PostgresFault.lost("away")

    @Test("a database known to be away is tried by one process at a time, ever less often, and by all once it is back")
    func away() {
        var reach = Reachability()
        func tries(_ now: ContinuousClock.Instant) -> Bool { reach.mayTry(now: now) }
        #expect(tries(start))
        #expect(tries(start))
        var now = start
        var pauses: [Duration] = []
        for _ in 0..<8 {
            reach.failed(fault, now: now, random: 1)
            #expect(reach.isKnownAway(now: now))
            #expect(!tries(now))
            pauses.append(now.duration(to: reach.nextTry(now: now)))
            now = reach.nextTry(now: now)
            #expect(!reach.isKnownAway(now: now))
            #expect(tries(now))
            #expect(!tries(now), "somebody is at it")
            #expect(reach.isKnownAway(now: now))
        }
        #expect(pauses == pauses.sorted())
        #expect(pauses.last == Reachability.longestPause)
        reach.succeeded(now: now)
        #expect(!reach.isKnownAway(now: now))
        #expect(tries(now))
        #expect(tries(now))
    }

    @Test("a process that was to find out and never answered does not keep all others out for ever")
    func forgotten() {
        var reach = Reachability()
        reach.failed(fault, now: start, random: 0)
        let next = reach.nextTry(now: start)
        func tries(_ now: ContinuousClock.Instant) -> Bool { reach.mayTry(now: now) }
        #expect(tries(next))
        #expect(tries(next + .seconds(31)))
    }

    @Test("once the database is back, marks that have ended stand for a moment, and only then")
    func grace() {
        var reach = Reachability()
        reach.succeeded(now: start)
        #expect(!reach.isInGrace(now: start), "the first connection")
        reach.broke()
        #expect(reach.isInGrace(now: start + .seconds(60)), "nobody knows what others could save")
        reach.succeeded(now: start + .seconds(60))
        #expect(reach.isInGrace(now: start + .seconds(60) + Reachability.grace - .milliseconds(1)))
        #expect(!reach.isInGrace(now: start + .seconds(60) + Reachability.grace))
    }

    @Test func `after an outage, or at another server, rows are left alone for a moment, and at no other time`() {
        var reach = Reachability()
        func connect(_ server: Int64, _ now: ContinuousClock.Instant) {
            reach.reached(server: server, isYoung: true, now: now)
            reach.succeeded(now: now)
        }
        connect(1, start)
        #expect(!reach.isSettling(now: start), "the first connection")
        reach.broke()
        #expect(reach.isSettling(now: start), "nobody knows which server is next")
        connect(1, start)
        #expect(!reach.isSettling(now: start), "a new connection to the same server")
        for isOther in [false, true] {
            reach.broke()
            if !isOther { reach.failed(fault, now: start, random: 0) }
            connect(isOther ? 2 : 1, start)
            #expect(reach.isSettling(now: start + .milliseconds(2999)))
            #expect(!reach.isSettling(now: start + .seconds(3)))
        }
    }

    @Test func `a first connection to a young server, and no later one, lets others restore records for a moment`() {
        for isYoung in [false, true] {
            var reach = Reachability()
            #expect(reach.isFirst)
            reach.reached(server: 1, isYoung: isYoung, now: start)
            reach.succeeded(now: start)
            #expect(!reach.isFirst)
            #expect(reach.isNewcomer(now: start + .milliseconds(2999)) == isYoung)
            #expect(!reach.isNewcomer(now: start + .seconds(3)))
            reach.reached(server: 1, isYoung: true, now: start + .seconds(60))
            #expect(!reach.isNewcomer(now: start + .seconds(60)))
        }
    }

    @Test func `a server that writes again, perhaps promoted, counts as one that returned`() {
        var reach = Reachability()
        reach.reached(server: 1, isYoung: false, now: start)
        reach.succeeded(now: start)
        reach.writesAgain(now: start + .seconds(60))
        reach.succeeded(now: start + .seconds(60))
        #expect(reach.isSettling(now: start + .milliseconds(62_999)))
        #expect(!reach.isSettling(now: start + .seconds(63)))
    }
}
