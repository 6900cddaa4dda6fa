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

    @Test("a 401 makes the token suspect there, and nowhere else")
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

    @Test("each time the new token is refused as well, the pause doubles, up to the token's life")
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
            // That was the next doubt; it is answered in the next round.
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

    @Test("that other requests are accepted there proves nothing about the refused ones")
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

    private func rig(needs: GrantNeeds = .nobody, refreshToken: String? = nil) -> LifeCycleRig {
        var rig = LifeCycleRig(needs: needs)
        rig.start(stored: rig.record("T1", expiresIn: 3600, refreshToken: refreshToken))
        _ = rig.use()
        rig.life.storedGeneration = nil
        return rig
    }

    private func refuse(_ rig: inout LifeCycleRig, _ resource: String = "a", replay: Bool = false) -> Bool {
        let answer = rig.life.refused(
            rig.life.token?.generation ?? 0, by: resource, saysInvalid: false, isReplay: replay, now: rig.now,
            random: { 0.5 })
        rig.collect()
        return answer
    }

    private func wait(_ rig: inout LifeCycleRig, _ resource: String = "a", insteadOf refused: UInt64?) -> UInt64 {
        let id = rig.nextWaiter
        rig.nextWaiter += 1
        rig.life.wait(
            id, for: resource, insteadOf: refused, until: rig.now + .seconds(10), now: rig.now, random: { 0.5 })
        rig.collect()
        return id
    }

    @Test("a suspect token is replaced through the refresh, serves others until then, and nothing is lost")
    func replaced() {
        var rig = rig(needs: .person, refreshToken: "R1")
        let old = rig.life.token?.generation
        #expect(refuse(&rig))
        #expect(rig.fetches == [.refresh(Secret("R1"))])
        #expect(rig.use() == "T1")
        #expect(rig.life.use(for: "b", now: rig.now, random: { 0.5 })?.value == Secret("T1"))
        #expect(rig.life.use(for: "a", now: rig.now, random: { 0.5 }) == nil)
        let held = wait(&rig, insteadOf: old)
        let queued = wait(&rig, insteadOf: nil)
        let other = wait(&rig, "b", insteadOf: nil)
        #expect(rig.outcomes[other]?.token == "T1")
        rig.answer(LifeCycleRig.token("T2", refreshToken: "R2"))
        #expect(rig.outcomes[held]?.token == "T2")
        #expect(rig.outcomes[queued]?.token == "T2")
        #expect(rig.eventNames == ["token_acquired", "token_refreshed"])
    }

    @Test("no-op when it has been replaced: the newer one is used")
    func noOp() {
        var rig = rig()
        let old = rig.life.token?.generation ?? 0
        #expect(refuse(&rig))
        rig.answer(LifeCycleRig.token("T2"))
        let again = rig.life.refused(
            old, by: "b", saysInvalid: true, isReplay: false, now: rig.now, random: { 0.5 })
        #expect(again)
        let id = wait(&rig, "b", insteadOf: old)
        #expect(rig.outcomes[id]?.token == "T2")
        #expect(rig.fetches.count == 1)
    }

    @Test("a token request that fails lets everybody go, and the old token serves on")
    func failing() {
        for fault in [LifeCycleRig.status(503), LifeCycleRig.refused(.invalidClient), .fault(.stuck, retryAfter: nil)] {
            var rig = rig()
            let old = rig.life.token?.generation
            #expect(refuse(&rig))
            let held = wait(&rig, insteadOf: old)
            rig.answer(fault)
            #expect(rig.outcomes[held]?.error != nil)
            #expect(rig.use() == "T1")
            #expect(rig.life.use(for: "a", now: rig.now, random: { 0.5 })?.value == Secret("T1"))
            // In the backoff nothing is to be had.
            #expect(!refuse(&rig))
            #expect(!rig.eventNames.contains("token_lost"))
        }
    }

    @Test("a dead refresh token without a name for it: they wait for the fresh grant")
    func deadRefreshToken() {
        var rig = rig(refreshToken: "R1")
        let old = rig.life.token?.generation
        #expect(refuse(&rig))
        let held = wait(&rig, insteadOf: old)
        rig.answer(LifeCycleRig.status(400))
        rig.pass(2.5)
        rig.answer(LifeCycleRig.status(400))
        rig.pass(1)
        rig.answer(LifeCycleRig.token("T2"))
        #expect(rig.outcomes[held]?.token == "T2")
    }

    @Test("where only a person could bring a new token, the 401 passes")
    func person() {
        var rig = rig(needs: .person)
        #expect(!refuse(&rig))
        #expect(rig.use() == "T1")
        #expect(rig.eventNames == ["token_acquired"])
        #expect(rig.fetches.isEmpty)
    }
}
