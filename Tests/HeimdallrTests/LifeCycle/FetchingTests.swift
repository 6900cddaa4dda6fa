import Testing

@testable import Heimdallr

@Suite struct `What is being fetched` {
    private let begin = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { begin + .seconds(seconds) }

    private func fetching() -> Fetching { Fetching(minInterval: .seconds(1), patience: .seconds(15)) }

    @Test("the earliest plan stands, and none is within a second of the last request")
    func planning() {
        var fetching = fetching()
        #expect(fetching.isIdle)
        #expect(fetching.wake == nil)
        fetching.plan(from: at(5))
        #expect(fetching.dueAt == at(5))
        fetching.plan(from: at(7))
        #expect(fetching.dueAt == at(5))
        fetching.plan(from: at(3))
        #expect(fetching.dueAt == at(3))
        #expect(!fetching.isDue(at: at(2.9)))
        #expect(fetching.isDue(at: at(3)))
        let fetch = fetching.begin(.grant)
        #expect(fetching.sends(fetch.id, seed: nil, now: at(3)) == true)
        fetching.end()
        fetching.plan(from: at(3.2))
        #expect(fetching.dueAt == at(4))
        fetching.replan(for: at(9))
        #expect(fetching.dueAt == at(9))
        fetching.unplan()
        #expect(fetching.isIdle)
        fetching.startedElsewhere(now: at(6))
        fetching.plan(from: at(6.5))
        #expect(fetching.dueAt == at(7))
    }

    @Test("nothing is planned while one is under way, and each has a number of its own")
    func one() {
        var fetching = fetching()
        let first = fetching.begin(.grant)
        fetching.plan(from: at(1))
        fetching.replan(for: at(1))
        #expect(fetching.dueAt == nil)
        #expect(fetching.current?.id == first.id)
        #expect(fetching.end()?.id == first.id)
        #expect(fetching.end()?.id == nil)
        #expect(fetching.isIdle)
        let second = fetching.begin(.refresh(Secret("R")))
        #expect(second.id != first.id)
        #expect(fetching.sends(first.id, seed: nil, now: at(1)) == false, "an old one's is nobody's")
        #expect(fetching.sends(second.id, seed: nil, now: at(1)) == true)
    }

    @Test("what was asked for and has no answer is stuck after its time; what stands in line or is being saved is not")
    func patience() {
        var fetching = fetching()
        let fetch = fetching.begin(.grant)
        #expect(fetching.wake == nil)
        #expect(fetching.stuck(at: at(100)) == nil)
        #expect(fetching.sends(fetch.id, seed: nil, now: at(10)) == true)
        #expect(fetching.wake == at(25))
        #expect(fetching.stuck(at: at(24.9)) == nil)
        #expect(fetching.stuck(at: at(25)) == fetch.id)
        fetching.saves(then: .fail(.stuck), now: at(20))
        #expect(fetching.stuck(at: at(100)) == nil)
        #expect(fetching.wake == nil)
        #expect(fetching.current?.startedAt == at(10))
    }

    @Test("a refresh token, or one that is handed in, is being spent from the request to the saved record")
    func spending() {
        var fetching = fetching()
        for (kind, seed, spends) in [
            (TokenLifeCycle.FetchKind.grant, Secret?.none, false), (.grant, Secret("seed"), true),
            (.refresh(Secret("R")), nil, true),
        ] {
            let fetch = fetching.begin(kind)
            #expect(fetching.current?.isSpending == false)
            #expect(fetching.sends(fetch.id, seed: seed, now: begin) == true)
            #expect(fetching.current?.isSpending == spends)
            fetching.saves(then: .fail(.stuck), now: begin)
            #expect(fetching.current?.isSpending == true)
            fetching.end()
        }
    }
}
