import Testing

@testable import Heimdallr

@Suite struct `The life cycle` {
    // MARK: Background refresh

    @Test("[34] a used token is refreshed before it expires, and serves until the new one is there")
    func backgroundRefresh() {
        var rig = LifeCycleRig()
        rig.start()
        rig.answer(LifeCycleRig.token("T1"))
        #expect(rig.use() == "T1")
        rig.pass(3600 - 60)
        rig.pass(14)
        #expect(rig.fetches.count == 1)
        rig.pass(1)  // 45 s before expiry: the middle of the jitter
        #expect(rig.fetches.count == 2)
        #expect(rig.use() == "T1")
        rig.answer(LifeCycleRig.token("T2"), after: 5)
        #expect(rig.use() == "T2")
        #expect(rig.eventNames == ["token_acquired", "token_refreshed"])
    }

    @Test("the refresh is spread over the second half of refresh_before", arguments: [(0.0, 3570.0), (0.999, 3540.03)])
    func jitter(chance: Double, at: Double) {
        var rig = LifeCycleRig()
        rig.chance = chance
        rig.start()
        rig.answer(LifeCycleRig.token("T1"))
        _ = rig.use()
        #expect(abs((rig.wake ?? 0) - at) < 0.01)
    }

    @Test("refresh_before is capped at half the token's life")
    func cappedAtHalf() {
        var rig = LifeCycleRig()
        rig.chance = 0.999
        rig.start()
        rig.answer(LifeCycleRig.token("T1", expiresIn: 20))
        _ = rig.use()
        #expect((10.0..<10.1).contains(rig.wake ?? 0))
    }

    @Test("a token that nobody uses is not refreshed; its first use within the window refreshes it")
    func unusedIsNotRefreshed() {
        var rig = LifeCycleRig()
        rig.start()
        rig.answer(LifeCycleRig.token("T1"))
        rig.pass(3580)
        #expect(rig.fetches.count == 1)
        #expect(rig.use() == "T1")
        #expect(rig.fetches.count == 2)
        rig.answer(LifeCycleRig.token("T2"))
        rig.pass(4000)
        #expect(rig.fetches.count == 2)
        #expect(rig.events.last == .tokenLost(.expired))
        #expect(rig.life.status(client: "c", grantType: "g", now: rig.now).state == .idle)
    }

    @Test("a failing background refresh is retried while the token serves, and never serves it after expiry")
    func failingBackgroundRefresh() {
        var rig = LifeCycleRig()
        rig.start()
        rig.answer(LifeCycleRig.token("T1"))
        _ = rig.use()
        rig.pass(3555)
        var attempts = 0
        while rig.now < rig.begin + .seconds(3600) {
            if rig.fetch != nil {
                rig.answer(LifeCycleRig.status(500))
                attempts += 1
            }
            #expect(rig.use() == "T1")
            rig.pass(0.5)
        }
        #expect(attempts >= 3)
        #expect(rig.use() == nil)
        #expect(rig.events.last == .tokenLost(.expired) || rig.events.contains(.tokenLost(.expired)))
        while rig.fetch == nil { rig.pass(0.5) }
        rig.answer(LifeCycleRig.token("T2"))
        #expect(rig.use() == "T2")
        #expect(rig.life.failure == nil)
    }

    @Test("a failing background refresh keeps to its backoff, however much the token is used")
    func backgroundBackoff() {
        var rig = LifeCycleRig(refreshBefore: .seconds(600))
        rig.chance = 0.9
        rig.start()
        rig.answer(LifeCycleRig.token("T1"))
        _ = rig.use()
        rig.pass(3060)
        var asked: [Double] = []
        while rig.use() != nil, rig.time < 3599 {
            if rig.fetch != nil {
                asked.append(rig.time)
                rig.answer(LifeCycleRig.refused(.invalidClient))
            }
            rig.pass(0.5)
        }
        // 9 s, 18 s, 36 s, 72 s, 144 s, 270 s
        #expect((5...7).contains(asked.count))
        #expect(zip(asked, asked.dropFirst()).allSatisfy { $1 - $0 > 8.9 })
    }

    @Test("start during the backoff of rejected tokens asks nothing early")
    func startWhileRejected() {
        var rig = LifeCycleRig()
        rig.chance = 0.9
        rig.start()
        for _ in 0..<2 {
            while rig.fetch == nil { rig.pass(0.5) }
            rig.answer(LifeCycleRig.token("T"))
            _ = rig.use()
            rig.reject()
        }
        let fetches = rig.fetches.count
        rig.life.start(now: rig.now, random: { 0.9 })
        rig.collect()
        rig.pass(3)
        #expect(rig.fetches.count == fetches)
        rig.pass(1)
        #expect(rig.fetches.count == fetches + 1)
    }

    // MARK: Waiting

    @Test("[40] each waiter has its own deadline and exactly one outcome; the fetch goes on")
    func deadlines() {
        var rig = LifeCycleRig()
        let short = rig.wait(1)
        let long = rig.wait(5)
        let leaver = rig.wait(5)
        rig.load()
        #expect(rig.fetches.count == 1)
        #expect(rig.life.began(1, now: rig.now) == true)
        rig.pass(1)
        #expect(rig.outcomes[short] == .failure(.deadlineExceeded(retryAfter: .seconds(1))))
        rig.life.leave(leaver)
        rig.collect()
        #expect(rig.outcomes[leaver] == .failure(.cancelled))
        #expect(rig.cancelled.isEmpty)
        rig.answer(LifeCycleRig.token("T1"), after: 2)
        #expect(rig.outcomes[long]?.token == "T1")
        #expect(rig.outcomes.count == 3)
    }

    @Test("[38] a 503 leaves waiters in line for the retry, those with time enough")
    func waitersStay() {
        var rig = LifeCycleRig()
        rig.chance = 0.99
        let short = rig.wait(1)
        let long = rig.wait(10)
        rig.load()
        rig.answer(LifeCycleRig.status(503, retryAfter: .seconds(3)))
        #expect(rig.outcomes[short] == .failure(.tokenEndpointUnavailable(.status(503), retryAfter: .seconds(3))))
        #expect(rig.outcomes[long] == nil)
        rig.pass(3)
        rig.answer(LifeCycleRig.token("T1"))
        #expect(rig.outcomes[long]?.token == "T1")
    }

    @Test("while it backs off, a burst gets the remembered failure at once and asks nothing")
    func rememberedFailure() {
        var rig = LifeCycleRig()
        rig.start()
        rig.answer(LifeCycleRig.status(503, retryAfter: .seconds(20)))
        rig.pass(5)
        for _ in 0..<100 {
            let id = rig.wait(60)
            #expect(rig.outcomes[id] == .failure(.tokenEndpointUnavailable(.status(503), retryAfter: .seconds(15))))
        }
        #expect(rig.fetches.count == 1)
        rig.pass(15)
        #expect(rig.fetches.count == 2)
        rig.answer(LifeCycleRig.token("T1"))
        #expect(rig.use() == "T1")
    }

    @Test("what looks permanent fails waiters at once and is tried again less often")
    func permanent() {
        var rig = LifeCycleRig()
        rig.chance = 0.999
        let id = rig.wait(3600)
        rig.load()
        rig.answer(LifeCycleRig.refused(.invalidClient, status: 401))
        #expect(rig.outcomes[id]?.error?.fault == .refused(OAuthError(status: 401, code: .invalidClient)))
        #expect(rig.eventNames == ["token_failed"])
        var gaps: [Double] = []
        for _ in 0..<8 {
            let before = rig.time
            while rig.fetch == nil { rig.pass(1) }
            gaps.append(rig.time - before)
            rig.answer(LifeCycleRig.refused(.invalidClient, status: 401))
        }
        #expect(gaps == gaps.sorted())
        #expect(gaps[0] == 10 && gaps[7] == 300)
        while rig.fetch == nil { rig.pass(1) }
        rig.answer(LifeCycleRig.token("T1"))
        #expect(rig.use() == "T1")
    }

    @Test("Retry-After is honoured, but never for longer than an hour")
    func retryAfter() {
        for (asked, kept) in [(120, 120.0), (10_000_000, 3600), (-5, 1)] {
            var rig = LifeCycleRig()
            rig.chance = 0
            rig.start()
            rig.answer(LifeCycleRig.status(429, retryAfter: .seconds(asked)))
            #expect(rig.wake == kept)
        }
    }

    @Test("a fetch that never ends is given up, and another one begun")
    func stuckFetch() {
        var rig = LifeCycleRig()
        rig.start()
        #expect(rig.life.began(1, now: rig.now) == true)
        rig.pass(15)
        #expect(rig.cancelled == [1])
        #expect(rig.events == [.tokenFailed(.tokenEndpointUnavailable(.stuck, retryAfter: .milliseconds(500)))])
        rig.pass(1)
        #expect(rig.fetches.count == 2)
        // What the first one brings after all is of no interest.
        #expect(
            rig.life.answered(1, LifeCycleRig.token("late"), now: rig.now, wallClock: rig.wall, random: { 0 }) == nil)
        rig.answer(LifeCycleRig.token("T1"))
        #expect(rig.use() == "T1")
    }

    // MARK: Never too often

    @Test("never more than one token request a second", arguments: [0.0, 1.0, 0.3, -5.0])
    func minimumInterval(expiresIn: Double) {
        var rig = LifeCycleRig()
        rig.chance = 0
        rig.start()
        var asked: [Double] = []
        while rig.time < 30 {
            if rig.fetch != nil {
                asked.append(rig.time)
                rig.answer(LifeCycleRig.token("T", expiresIn: expiresIn))
            }
            rig.wait(1)
            _ = rig.use()
            rig.pass(0.1)
        }
        #expect(zip(asked, asked.dropFirst()).allSatisfy { $1 - $0 >= 0.999 })
        #expect(asked.count <= 31 && asked.count >= 2)
    }

    // MARK: Rejected tokens

    @Test("a rejected token is never used again, and one new one is fetched for a burst of rejections")
    func rejection() {
        var rig = LifeCycleRig()
        rig.start()
        rig.answer(LifeCycleRig.token("T1"))
        _ = rig.use()
        rig.pass(100)
        let generation = rig.life.token?.generation
        for _ in 0..<50 { rig.reject(generation) }
        #expect(rig.use() == nil)
        #expect(rig.fetches.count == 2)
        let id = rig.wait()
        rig.answer(LifeCycleRig.token("T2"))
        #expect(rig.outcomes[id]?.token == "T2")
        rig.reject(generation)
        #expect(rig.use() == "T2")
        #expect(rig.fetches.count == 2)
        #expect(rig.eventNames == ["token_acquired", "token_lost", "token_acquired"])
    }

    @Test("tokens rejected on their first use back off; one that was accepted does not")
    func firstUseRejections() {
        var rig = LifeCycleRig()
        rig.start()
        var fetchesByMinute: [Int] = []
        for _ in 0..<5 {
            let before = rig.fetches.count
            for _ in 0..<600 {
                if rig.fetch != nil { rig.answer(LifeCycleRig.token("T")) }
                if rig.use() != nil { rig.reject() } else { rig.wait(0.05) }
                rig.pass(0.1)
            }
            fetchesByMinute.append(rig.fetches.count - before)
        }
        #expect(fetchesByMinute[0] <= 8)
        #expect(fetchesByMinute[4] <= 2)
        let id = rig.wait()
        if case .failure(.rejectedByResource) = rig.outcomes[id] {} else { Issue.record("\(rig.outcomes[id] as Any)") }

        rig.pass(400)
        rig.wait()
        for _ in 0..<5 {
            while rig.fetch == nil { rig.pass(1) }
            rig.answer(LifeCycleRig.token("T"))
            rig.life.token?.noteAccepted()
            _ = rig.use()
            rig.reject()
        }
        #expect(rig.life.rejectedUntil == nil)
    }

    // MARK: Refresh tokens

    @Test("[14] [15] [16] only invalid_grant discards a refresh token")
    func onlyInvalidGrantDiscards() {
        let faults: [TokenLifeCycle.Outcome] = [
            .fault(.network(.connect), retryAfter: nil), .fault(.network(.timeout), retryAfter: nil),
            LifeCycleRig.status(500), LifeCycleRig.status(503), LifeCycleRig.status(429), LifeCycleRig.status(403),
            LifeCycleRig.status(404), LifeCycleRig.status(400), LifeCycleRig.status(401),
            LifeCycleRig.refused(.invalidClient), LifeCycleRig.refused(.invalidScope),
            LifeCycleRig.refused(.invalidGrant, status: 500), LifeCycleRig.refused(.serverError),
            .fault(.answer(.notJSON), retryAfter: nil), .fault(.answer(.emptyBody), retryAfter: nil),
            .fault(.redirect(302), retryAfter: nil), LifeCycleRig.token("bad token"),
            LifeCycleRig.token("T", expiresIn: 0),
        ]
        for fault in faults {
            var rig = LifeCycleRig(needs: .person)
            rig.start(stored: rig.record(nil, refreshToken: "R1"))
            #expect(rig.fetches == [.refresh(Secret("R1"))])
            rig.answer(fault)
            #expect(rig.life.refreshToken == Secret("R1"))
            #expect(!rig.eventNames.contains("needs_authentication"))
            while rig.fetch == nil { rig.pass(1) }
            #expect(rig.fetches.last == .refresh(Secret("R1")))
            rig.answer(LifeCycleRig.token("T2", refreshToken: "R2"))
            #expect(rig.use() == "T2")
            #expect(rig.life.refreshToken == Secret("R2"))
        }
    }

    @Test("[60] invalid_grant: a grant that needs nobody starts afresh, for the same waiters")
    func invalidGrantUnattended() {
        var rig = LifeCycleRig()
        let id = rig.wait()
        rig.load(rig.record(nil, refreshToken: "R1"))
        let record = rig.answer(LifeCycleRig.refused(.invalidGrant))
        #expect(record?.refreshToken == nil)
        #expect(rig.outcomes[id] == nil)
        rig.pass(1)
        #expect(rig.fetches == [.refresh(Secret("R1")), .grant])
        rig.answer(LifeCycleRig.token("T1"))
        #expect(rig.outcomes[id]?.token == "T1")
        #expect(!rig.eventNames.contains("needs_authentication"))
    }

    @Test("[60] invalid_grant: an interactive grant needs a login, says so once, and asks nothing more")
    func invalidGrantInteractive() {
        var rig = LifeCycleRig(needs: .person)
        let id = rig.wait()
        rig.load(rig.record(nil, refreshToken: "R1"))
        rig.answer(LifeCycleRig.refused(.invalidGrant))
        #expect(rig.outcomes[id] == .failure(.needsAuthentication))
        rig.pass(3600)
        let later = rig.wait()
        #expect(rig.outcomes[later] == .failure(.needsAuthentication))
        #expect(rig.fetches.count == 1)
        #expect(rig.eventNames == ["token_lost", "needs_authentication"])
    }

    @Test("a seeded refresh token that was refused is not sent again; a new one is")
    func seedSpent() {
        var rig = LifeCycleRig(needs: .freshSeed)
        rig.start()
        #expect(rig.fetches == [.grant])
        #expect(rig.life.began(1, seed: Secret("R0"), now: rig.now) == true)
        #expect(
            rig.life.answered(
                1, LifeCycleRig.refused(.invalidGrant), now: rig.now, wallClock: rig.wall, random: { 0.5 }) == nil)
        rig.fetch = nil
        rig.collect()
        #expect(rig.life.spentRefreshToken == Secret("R0"))
        #expect(rig.eventNames == ["needs_authentication"])
        let id = rig.wait()
        #expect(rig.outcomes[id] == .failure(.needsAuthentication))
        for _ in 0..<3 {
            while rig.fetch == nil { rig.pass(1) }
            rig.answer(.seedSpent)
        }
        #expect(rig.eventNames == ["needs_authentication"])
        while rig.fetch == nil { rig.pass(1) }
        rig.answer(LifeCycleRig.token("T1", refreshToken: "R1"))
        #expect(rig.use() == "T1")
        #expect(rig.life.refreshToken == Secret("R1"))
    }
}
