import Testing

@testable import PostgresStore

@Suite struct `Whether the database can be reached` {
    private let start = ContinuousClock.now
    private let fault = PostgresFault.lost("away")

    @Test("known to be away, it is tried by one at a time, ever less often, and by all once it is back")
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

    @Test("who was to find out and never said anything does not keep all others out for ever")
    func forgotten() {
        var reach = Reachability()
        reach.failed(fault, now: start, random: 0)
        let next = reach.nextTry(now: start)
        func tries(_ now: ContinuousClock.Instant) -> Bool { reach.mayTry(now: now) }
        #expect(tries(next))
        #expect(tries(next + .seconds(31)))
    }

    @Test("a server that was just started, or another in its place, is given time in which nobody takes a lease")
    func grace() {
        var reach = Reachability()
        reach.sees(ServerStart(time: 1, ago: .seconds(3600)), now: start)
        #expect(reach.graceEnd == nil, "the first one that is seen")
        reach.sees(ServerStart(time: 2, ago: .seconds(3600)), now: start)
        #expect(reach.graceEnd == start + reach.grace)
        reach.sees(ServerStart(time: 2, ago: .seconds(3601)), now: start + .seconds(1))
        #expect(reach.graceEnd == start + reach.grace)
        var fresh = Reachability()
        fresh.sees(ServerStart(time: 3, ago: .seconds(1)), now: start)
        #expect(fresh.graceEnd == start - .seconds(1) + fresh.grace)
        var setBack = Reachability()
        setBack.sees(ServerStart(time: 3, ago: .seconds(-3600)), now: start)
        #expect(setBack.graceEnd == nil, "nobody knows how long it is up")
        var broken = Reachability()
        broken.succeeded(now: start)
        #expect(broken.graceEnd == nil)
        broken.broke()
        broken.succeeded(now: start)
        #expect(broken.graceEnd == start + broken.grace)
    }
}
