import Testing

@testable import Heimdallr

@Suite struct `What resources say of a token` {
    private let begin = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { begin + .seconds(seconds) }

    private func refusal(
        _ generation: UInt64, at resource: String = "a", invalid: Bool = false, replay: Bool = false,
        life: Double = 3600, stored: Bool = false
    ) -> Suspicions.Refusal {
        Suspicions.Refusal(
            generation: generation, resource: resource, saysInvalid: invalid, isReplay: replay, life: .seconds(life),
            isStored: stored)
    }

    @Test("a 401 makes the token suspect at that upstream, and nowhere else")
    func oneResource() {
        var suspicions = Suspicions()
        #expect(suspicions.refused(refusal(1), now: begin) == true)
        #expect(suspicions.refused(refusal(1), now: begin) == true)
        #expect(suspicions.isSuspect(1, at: "a"))
        #expect(!suspicions.isSuspect(1, at: "b"))
        #expect(!suspicions.isSuspect(2, at: "a"))
        suspicions.giveUp()
        #expect(!suspicions.isSuspect(1, at: "a"))
    }

    @Test("the pause of an upstream doubles with each new token that is refused, up to the token's life")
    func doubling() {
        var suspicions = Suspicions()
        var now = 0.0
        var generation: UInt64 = 1
        var pauses: [Double] = []
        for _ in 0..<9 {
            #expect(suspicions.refused(refusal(generation, life: 300), now: at(now)) == true)
            generation += 1
            for _ in 0..<20 {
                #expect(suspicions.refused(refusal(generation, replay: true, life: 300), now: at(now)) == false)
            }
            let from = now
            while !suspicions.refused(refusal(generation, life: 300), now: at(now)) { now += 1 }
            // The next doubt. The next round answers it.
            pauses.append(now - from)
            generation += 1
            _ = suspicions.refused(refusal(generation, replay: true, life: 300), now: at(now))
            suspicions.giveUp()
            now += pauses.last == 300 ? 300 : pauses.last.map { $0 * 2 } ?? 0
        }
        #expect(pauses == pauses.sorted())
        #expect(pauses.first == 4)
        #expect(pauses.last == 300)
    }

    @Test("a replay that is accepted proves the doubt right: the next one is heard at once")
    func right() {
        var suspicions = Suspicions()
        for generation in 1...20 as ClosedRange<UInt64> {
            #expect(suspicions.refused(refusal(generation), now: begin) == true)
            suspicions.accepted(generation + 1, at: "a", isReplay: true)
        }
    }

    @Test("an upstream's accepted requests prove nothing about the refused ones")
    func others() {
        var suspicions = Suspicions()
        #expect(suspicions.refused(refusal(1), now: begin) == true)
        suspicions.accepted(2, at: "a", isReplay: false)
        #expect(suspicions.refused(refusal(2, replay: true), now: begin) == false)
        suspicions.accepted(2, at: "a", isReplay: false)
        #expect(suspicions.refused(refusal(2), now: at(3)) == false)
        #expect(suspicions.refused(refusal(2, invalid: true), now: at(3)) == false)
        #expect(suspicions.refused(refusal(2), now: at(4)) == true)
    }

    @Test("invalid_token for a token that was never accepted there is heard in the pause, ever more rarely")
    func invalid() {
        var suspicions = Suspicions()
        #expect(suspicions.refused(refusal(1, life: 1e6), now: begin) == true)
        #expect(suspicions.refused(refusal(2, replay: true, life: 1e6), now: begin) == false)
        #expect(suspicions.refused(refusal(2), now: begin) == false)
        var asked: [Int] = []
        var generation: UInt64 = 2
        for second in 0..<3600 {
            guard suspicions.refused(refusal(generation, invalid: true, life: 1e6), now: at(Double(second))) else {
                continue
            }
            asked.append(second)
            generation += 1
            _ = suspicions.refused(refusal(generation, invalid: true, replay: true, life: 1e6), now: at(Double(second)))
        }
        #expect(asked.first == 0)
        #expect(asked.filter { $0 < 60 }.count <= 5)
        #expect(zip(asked.dropFirst(8), asked.dropFirst(9)).allSatisfy { $1 - $0 == 300 })
    }

    @Test("a token from the store that is refused acquits nobody")
    func stored() {
        var suspicions = Suspicions()
        #expect(suspicions.refused(refusal(1), now: begin) == true)
        #expect(suspicions.refused(refusal(2, replay: true, stored: true), now: begin) == false)
        #expect(suspicions.refused(refusal(2, stored: true), now: begin) == true)
        #expect(suspicions.refused(refusal(3, replay: true), now: begin) == false)
        #expect(suspicions.refused(refusal(3), now: at(7)) == false)
        #expect(suspicions.refused(refusal(3), now: at(8)) == true)
    }

    // MARK: In the life cycle

    private func cycle(needs: GrantNeeds = .nobody, refreshToken: String? = nil) -> DrivenLifeCycle {
        var cycle = DrivenLifeCycle(needs: needs)
        cycle.start()
        #expect(throws: Never.self) { try cycle.logIn(DrivenLifeCycle.response("T1", refreshToken: refreshToken)) }
        cycle.pass(2)
        _ = cycle.use()
        (cycle.fetches, cycle.events) = ([], [.tokenAcquired(expiresIn: .seconds(3600), stored: false)])
        return cycle
    }

    private func refuse(_ cycle: inout DrivenLifeCycle, _ resource: String = "a", replay: Bool = false) -> Bool {
        let answer = cycle.life.refused(
            cycle.life.token?.generation ?? 0, by: resource, saysInvalid: false, isReplay: replay, cycle.moment)
        cycle.collect()
        return answer
    }

    private func wait(_ cycle: inout DrivenLifeCycle, _ resource: String = "a", insteadOf refused: UInt64?) -> UInt64 {
        let id = cycle.nextWaiter
        cycle.nextWaiter += 1
        cycle.life.wait(id, for: resource, insteadOf: refused, until: cycle.now + .seconds(10), cycle.moment)
        cycle.collect()
        return id
    }

    @Test("a suspect token is replaced through the refresh, serves others until then, and nothing is lost")
    func replaced() {
        var cycle = cycle(needs: .person, refreshToken: "R1")
        let old = cycle.life.token?.generation
        #expect(refuse(&cycle))
        #expect(cycle.fetches == [.refresh(Secret("R1"))])
        #expect(cycle.use() == "T1")
        #expect(cycle.life.use(for: "b", cycle.moment)?.value == Secret("T1"))
        #expect(cycle.life.use(for: "a", cycle.moment) == nil)
        let held = wait(&cycle, insteadOf: old)
        let queued = wait(&cycle, insteadOf: nil)
        let other = wait(&cycle, "b", insteadOf: nil)
        #expect(cycle.outcomes[other]?.token == "T1")
        cycle.answer(DrivenLifeCycle.token("T2", refreshToken: "R2"))
        #expect(cycle.outcomes[held]?.token == "T2")
        #expect(cycle.outcomes[queued]?.token == "T2")
        #expect(cycle.eventNames == ["token_acquired", "token_refreshed"])
    }

    @Test("a doubt about a token that has been replaced starts nothing: the newer one is used")
    func noOp() {
        var cycle = cycle()
        let old = cycle.life.token?.generation ?? 0
        #expect(refuse(&cycle))
        cycle.answer(DrivenLifeCycle.token("T2"))
        let again = cycle.life.refused(old, by: "b", saysInvalid: true, isReplay: false, cycle.moment)
        #expect(again)
        let id = wait(&cycle, "b", insteadOf: old)
        #expect(cycle.outcomes[id]?.token == "T2")
        #expect(cycle.fetches.count == 1)
    }

    @Test("a token request that fails lets everybody go, and the old token serves on")
    func failing() {
        for fault in [
            DrivenLifeCycle.status(503), DrivenLifeCycle.refused(.invalidClient), .fault(.stuck, retryAfter: nil),
        ] {
            var cycle = cycle()
            let old = cycle.life.token?.generation
            #expect(refuse(&cycle))
            let held = wait(&cycle, insteadOf: old)
            cycle.answer(fault)
            #expect(cycle.outcomes[held]?.error != nil)
            #expect(cycle.use() == "T1")
            #expect(cycle.life.use(for: "a", cycle.moment)?.value == Secret("T1"))
            // During the backoff there is no token.
            #expect(!refuse(&cycle))
            #expect(!cycle.eventNames.contains("token_lost"))
        }
    }

    @Test("callers wait for the fresh grant behind a dead refresh token that has no name for it")
    func deadRefreshToken() {
        var cycle = cycle(refreshToken: "R1")
        let old = cycle.life.token?.generation
        #expect(refuse(&cycle))
        let held = wait(&cycle, insteadOf: old)
        cycle.answer(DrivenLifeCycle.status(400))
        cycle.pass(2.5)
        cycle.answer(DrivenLifeCycle.status(400))
        cycle.pass(1)
        cycle.answer(DrivenLifeCycle.token("T2"))
        #expect(cycle.outcomes[held]?.token == "T2")
    }

    @Test("where only a person could bring a new token, the 401 passes")
    func person() {
        var cycle = cycle(needs: .person)
        #expect(!refuse(&cycle))
        #expect(cycle.use() == "T1")
        #expect(cycle.eventNames == ["token_acquired"])
        #expect(cycle.fetches.isEmpty)
    }
}
