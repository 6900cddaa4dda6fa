import Testing

@testable import Heimdallr

@Suite struct `The life cycle and its store` {
    @Test("while a retry is still writing, no alarm rings for the next one")
    func slowResave() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1", refreshToken: "R1"), saving: "disk full")
        while cycle.resaves.isEmpty { cycle.pass(1) }
        cycle.reject()
        cycle.pass(1)
        cycle.answer(DrivenLifeCycle.token("T2", refreshToken: "R2"), saving: "disk full")
        cycle.pass(100)
        #expect(cycle.resaves.count == 1)
        #expect((cycle.wake ?? .infinity) > cycle.time)
    }

    @Test("a rotated refresh token that comes with a useless access token is kept and saved")
    func rotationWithUselessToken() {
        for outcome in [
            DrivenLifeCycle.token("bad token", refreshToken: "R2"),
            DrivenLifeCycle.token("T", expiresIn: 0, refreshToken: "R2"),
        ] {
            var cycle = DrivenLifeCycle(needs: .person)
            cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
            let record = cycle.answer(outcome)
            #expect(record?.refreshToken == Secret("R2"))
            #expect(cycle.use() == nil)
            while cycle.fetch == nil { cycle.pass(1) }
            #expect(cycle.fetches.last == .refresh(Secret("R2")))
        }
    }

    @Test("a stored token that is still valid is used, and nothing is asked")
    func storedToken() {
        var cycle = DrivenLifeCycle()
        cycle.start(stored: cycle.record("S1", expiresIn: 1000))
        #expect(cycle.fetches.isEmpty)
        #expect(cycle.use() == "S1")
        #expect(cycle.events == [.tokenAcquired(expiresIn: .seconds(1000), stored: true)])
        cycle.pass(999)
        #expect(cycle.use() == "S1")
        cycle.pass(1)
        #expect(cycle.use() == nil)
    }

    @Test("[25] [29] a token of the past has expired; a wall clock behind the time of issue proves nothing")
    func expiredStoredToken() {
        for (expiresIn, age) in [(-1, 100), (0, 100), (1000, -1), (1000, -3600), (-5, -10)] as [(Int64, Int64)] {
            var cycle = DrivenLifeCycle()
            cycle.start(stored: cycle.record("S1", expiresIn: expiresIn, age: age, refreshToken: "R1"))
            #expect(cycle.use() == nil)
            #expect(cycle.fetches == [.refresh(Secret("R1"))])
        }
    }

    @Test("a record with absurd times is no trap")
    func absurdRecords() {
        for (issued, expires) in [
            (Int64.min, Int64.max), (.max, .min), (.min, .min), (0, .max), (.min, 1_700_000_001),
        ] {
            var cycle = DrivenLifeCycle()
            var record = cycle.record("S1")
            record.issuedAt = issued
            record.expiresAt = expires
            cycle.start(stored: record)
            cycle.pass(1)
        }
    }

    @Test("a record whose access token could end a header line is not used")
    func poisonedRecord() {
        var cycle = DrivenLifeCycle()
        cycle.start(stored: cycle.record("a\r\nX: y"))
        #expect(cycle.use() == nil)
        #expect(cycle.fetches == [.grant])
    }

    @Test("a store that can't be read is said, and the client goes on from memory")
    func unreadable() {
        var cycle = DrivenLifeCycle()
        cycle.start(fault: "wrong key")
        #expect(cycle.life.saving.fault == "wrong key")
        #expect(cycle.fetches == [.grant])
        cycle.answer(DrivenLifeCycle.token("T1"), saving: "wrong key")
        #expect(cycle.use() == "T1")
    }

    @Test("a token that another process has stored meanwhile is taken up instead of asking")
    func adopted() {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
        let id = cycle.wait()
        cycle.answer(.adopted(cycle.record("T2", refreshToken: "R2", revision: 8)))
        #expect(cycle.outcomes[id]?.token == "T2")
        #expect(cycle.life.refreshToken == Secret("R2"))
        #expect(cycle.life.revision == 8)
    }

    @Test func `a fetch that takes up a later record gives up what was not saved`() {
        var cycle = DrivenLifeCycle()
        cycle.start(fault: "away")
        cycle.answer(DrivenLifeCycle.token("T1"), saving: "away")
        #expect(cycle.life.unsaved?.revision == 1)
        let moment = cycle.moment
        cycle.life.refreshNow(moment)
        cycle.pass(2)
        cycle.answer(.adopted(cycle.record("T2", expiresIn: -1, refreshToken: nil, revision: 9)))
        #expect(cycle.life.unsaved == nil && cycle.life.saving.fault == nil)
        #expect(cycle.life.token == nil, "nobody else has T1")
        #expect(cycle.life.revision == 9)
    }

    @Test func `a token that a later record does not hold is gone, though the one in the record has ended`() {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record("T1", refreshToken: "R1", revision: 5))
        cycle.life.noticed(cycle.record("T2", expiresIn: -1, refreshToken: "R2", revision: 6), cycle.moment)
        cycle.collect()
        #expect(cycle.life.token == nil)
        #expect(cycle.life.refreshToken == Secret("R2"))
    }

    @Test func `a later record with the same access token brings no newer token`() {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record("T1", refreshToken: "R1", revision: 5))
        let generation = cycle.life.token?.generation
        cycle.life.noticed(cycle.record("T1", refreshToken: nil, revision: 6), cycle.moment)
        cycle.collect()
        #expect(cycle.life.revision == 6)
        #expect(cycle.life.refreshToken == nil)
        #expect(cycle.life.token?.generation == generation)
    }

    @Test("revisions grow with every record")
    func revisions() {
        var cycle = DrivenLifeCycle()
        cycle.start(stored: cycle.record(nil, refreshToken: "R1", revision: 41))
        #expect(cycle.answer(DrivenLifeCycle.token("T1"))?.revision == 42)
        cycle.reject()
        cycle.pass(1)
        #expect(cycle.answer(DrivenLifeCycle.refused(.invalidGrant))?.revision == 43)
    }

    @Test("clear forgets all, and what was under way changes nothing")
    func clear() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1", refreshToken: "R1"))
        _ = cycle.use()
        cycle.pass(3560)
        let underWay = cycle.fetch?.id ?? 0
        #expect(cycle.life.sends(underWay, now: cycle.now) == true)
        cycle.life.clear(cycle.moment)
        cycle.collect()
        #expect(cycle.cancelled == [underWay])
        #expect(cycle.life.sends(underWay, now: cycle.now) == false)
        #expect(
            cycle.life.answered(
                underWay, DrivenLifeCycle.token("T2", refreshToken: "R2"), cycle.moment) == nil)
        #expect(cycle.use() == nil)
        #expect(cycle.life.refreshToken == nil)
        cycle.pass(10)
        #expect(cycle.fetches.count == 2)
        #expect(
            cycle.life.answered(
                underWay, DrivenLifeCycle.token("T2"), cycle.moment) == nil)
        cycle.wait()
        #expect(cycle.fetches.last == .grant)
    }

    @Test(arguments: [(3, "T8", nil), (9, "T9", 9)] as [(UInt64, String, UInt64?)])
    func `a record that is inherited after the start replaces an older one, and never comes back later`(
        revision: UInt64, token: String, unsaved: UInt64?
    ) {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record("T8", refreshToken: "R8", revision: 8))
        let record = cycle.record("T\(revision)", refreshToken: "R\(revision)", revision: revision)
        let moment = cycle.moment
        cycle.life.inherit(record, moment)
        #expect(cycle.life.token?.value == Secret(token))
        #expect(cycle.life.unsaved?.revision == unsaved)
    }

    @Test("a sign-out before the first reading also forgets the record of the object before")
    func inheritedAndForgotten() {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.life.inherit(cycle.record("T1", refreshToken: "R1"), cycle.moment)
        cycle.life.start(cycle.moment)
        #expect(cycle.life.unsaved != nil)
        cycle.life.clear(cycle.moment)
        #expect(cycle.life.unsaved == nil)
        cycle.load()
        cycle.pass(60)
        #expect(cycle.resaves.isEmpty)
        #expect(cycle.life.refreshToken == nil)
    }
}
