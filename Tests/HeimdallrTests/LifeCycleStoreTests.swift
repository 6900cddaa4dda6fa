import Testing

@testable import Heimdallr

@Suite struct `The life cycle and its store` {
    @Test("[19] a token is in use only after its record was saved")
    func durableBeforeUse() throws {
        var rig = LifeCycleRig()
        let id = rig.wait()
        rig.load()
        let answer = rig.answerWithoutSaving(LifeCycleRig.token("T1", refreshToken: "R1"))
        let record = try #require(answer)
        #expect(record.accessToken == Secret("T1"))
        #expect(record.refreshToken == Secret("R1"))
        #expect(rig.use() == nil)
        #expect(rig.outcomes[id] == nil)
        rig.saved(record)
        #expect(rig.use() == "T1")
        #expect(rig.outcomes[id]?.token == "T1")
    }

    @Test("a save that fails does not stop traffic: the token serves from memory, and saving is retried")
    func failingSave() {
        var rig = LifeCycleRig()
        rig.start()
        let record = rig.answer(LifeCycleRig.token("T1", refreshToken: "R1"), saving: "disk full")
        #expect(rig.use() == "T1")
        #expect(rig.life.storeFault == "disk full")
        for attempt in 1...3 {
            while rig.resaves.count < attempt { rig.pass(1) }
            #expect(rig.resaves.last == record)
            let fault = attempt == 3 ? nil : "disk full"
            rig.life.resaved(rig.resaves[attempt - 1], fault: fault, now: rig.now, random: { 0.5 })
            rig.collect()
        }
        #expect(rig.life.storeFault == nil)
        rig.pass(100)
        #expect(rig.resaves.count == 3)
    }

    @Test("the retry of an old record says nothing about a newer one")
    func staleResave() {
        var rig = LifeCycleRig()
        rig.start()
        rig.answer(LifeCycleRig.token("T1", refreshToken: "R1"), saving: "disk full")
        while rig.resaves.isEmpty { rig.pass(1) }
        rig.reject()
        rig.pass(1)
        rig.answer(LifeCycleRig.token("T2", refreshToken: "R2"), saving: "disk full")
        rig.life.resaved(rig.resaves[0], fault: nil, now: rig.now, random: { 0.5 })
        #expect(rig.life.storeFault == "disk full")
        while rig.resaves.count < 2 { rig.pass(1) }
        #expect(rig.resaves[1].refreshToken == Secret("R2"))
    }

    @Test("while a retry is still writing, no alarm rings for the next one")
    func slowResave() {
        var rig = LifeCycleRig()
        rig.start()
        rig.answer(LifeCycleRig.token("T1", refreshToken: "R1"), saving: "disk full")
        while rig.resaves.isEmpty { rig.pass(1) }
        rig.reject()
        rig.pass(1)
        rig.answer(LifeCycleRig.token("T2", refreshToken: "R2"), saving: "disk full")
        rig.pass(100)
        #expect(rig.resaves.count == 1)
        #expect((rig.wake ?? .infinity) > rig.time)
    }

    @Test("a rotated refresh token that comes with a useless access token is kept and saved")
    func rotationWithUselessToken() {
        for outcome in [
            LifeCycleRig.token("bad token", refreshToken: "R2"),
            LifeCycleRig.token("T", expiresIn: 0, refreshToken: "R2"),
        ] {
            var rig = LifeCycleRig(needs: .person)
            rig.start(stored: rig.record(nil, refreshToken: "R1"))
            let record = rig.answer(outcome)
            #expect(record?.refreshToken == Secret("R2"))
            #expect(rig.use() == nil)
            while rig.fetch == nil { rig.pass(1) }
            #expect(rig.fetches.last == .refresh(Secret("R2")))
        }
    }

    @Test("a stored token that is still valid is used, and nothing is asked")
    func storedToken() {
        var rig = LifeCycleRig()
        rig.start(stored: rig.record("S1", expiresIn: 1000))
        #expect(rig.fetches.isEmpty)
        #expect(rig.use() == "S1")
        #expect(rig.events == [.tokenAcquired(expiresIn: .seconds(1000), stored: true)])
        rig.pass(999)
        #expect(rig.use() == "S1")
        rig.pass(1)
        #expect(rig.use() == nil)
    }

    @Test("[25] [29] in the past means expired; a wall clock behind the time of issue proves nothing")
    func expiredStoredToken() {
        for (expiresIn, age) in [(-1, 100), (0, 100), (1000, -1), (1000, -3600), (-5, -10)] as [(Int64, Int64)] {
            var rig = LifeCycleRig()
            rig.start(stored: rig.record("S1", expiresIn: expiresIn, age: age, refreshToken: "R1"))
            #expect(rig.use() == nil)
            #expect(rig.fetches == [.refresh(Secret("R1"))])
        }
    }

    @Test("a record with absurd times is no trap")
    func absurdRecords() {
        for (issued, expires) in [
            (Int64.min, Int64.max), (.max, .min), (.min, .min), (0, .max), (.min, 1_700_000_001),
        ] {
            var rig = LifeCycleRig()
            var record = rig.record("S1")
            record.issuedAt = issued
            record.expiresAt = expires
            rig.start(stored: record)
            rig.pass(1)
        }
    }

    @Test("a record whose access token could end a header line is not used")
    func poisonedRecord() {
        var rig = LifeCycleRig()
        rig.start(stored: rig.record("a\r\nX: y"))
        #expect(rig.use() == nil)
        #expect(rig.fetches == [.grant])
    }

    @Test("a store that can't be read is said, and the client goes on from memory")
    func unreadable() {
        var rig = LifeCycleRig()
        rig.start(fault: "wrong key")
        #expect(rig.life.storeFault == "wrong key")
        #expect(rig.fetches == [.grant])
        rig.answer(LifeCycleRig.token("T1"), saving: "wrong key")
        #expect(rig.use() == "T1")
    }

    @Test("what another process has stored meanwhile is taken up instead of asking")
    func adopted() {
        var rig = LifeCycleRig(needs: .person)
        rig.start(stored: rig.record(nil, refreshToken: "R1"))
        let id = rig.wait()
        rig.answer(.adopted(rig.record("T2", refreshToken: "R2", revision: 8)))
        #expect(rig.outcomes[id]?.token == "T2")
        #expect(rig.life.refreshToken == Secret("R2"))
        #expect(rig.life.revision == 8)
    }

    @Test("revisions grow with every record")
    func revisions() {
        var rig = LifeCycleRig()
        rig.start(stored: rig.record(nil, refreshToken: "R1", revision: 41))
        #expect(rig.answer(LifeCycleRig.token("T1"))?.revision == 42)
        rig.reject()
        rig.pass(1)
        #expect(rig.answer(LifeCycleRig.refused(.invalidGrant))?.revision == 43)
    }

    @Test("clear forgets all, and what was under way changes nothing")
    func clear() {
        var rig = LifeCycleRig()
        rig.start()
        rig.answer(LifeCycleRig.token("T1", refreshToken: "R1"))
        _ = rig.use()
        rig.pass(3560)
        let underWay = rig.fetch?.id ?? 0
        #expect(rig.life.began(underWay, now: rig.now) == true)
        rig.life.clear(now: rig.now, random: { 0.5 })
        rig.collect()
        #expect(rig.cancelled == [underWay])
        #expect(rig.life.began(underWay, now: rig.now) == false)
        #expect(
            rig.life.answered(
                underWay, LifeCycleRig.token("T2", refreshToken: "R2"), now: rig.now, wallClock: rig.wall,
                random: { 0.5 }) == nil)
        #expect(rig.use() == nil)
        #expect(rig.life.refreshToken == nil)
        rig.pass(10)
        #expect(rig.fetches.count == 2)
        #expect(
            rig.life.answered(
                underWay, LifeCycleRig.token("T2"), now: rig.now, wallClock: rig.wall, random: { 0.5 }) == nil)
        rig.wait()
        #expect(rig.fetches.last == .grant)
    }
}
