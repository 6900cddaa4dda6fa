import Testing

@testable import Heimdallr

@Suite struct `The life cycle` {
    // MARK: Background refresh

    @Test("[34] a used token is refreshed before it expires, and serves until the new one is there")
    func backgroundRefresh() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.use() == "T1")
        cycle.pass(3600 - 60)
        cycle.pass(14)
        #expect(cycle.fetches.count == 1)
        cycle.pass(1)  // 45 s before expiry: the middle of the jitter
        #expect(cycle.fetches.count == 2)
        #expect(cycle.use() == "T1")
        cycle.answer(DrivenLifeCycle.token("T2"), after: 5)
        #expect(cycle.use() == "T2")
        #expect(cycle.eventNames == ["token_acquired", "token_refreshed"])
    }

    @Test("the refresh is spread over the second half of refresh_before", arguments: [(0.0, 3570.0), (0.999, 3540.03)])
    func jitter(chance: Double, at: Double) {
        var cycle = DrivenLifeCycle()
        cycle.chance = chance
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1"))
        _ = cycle.use()
        #expect(abs((cycle.wake ?? 0) - at) < 0.01)
    }

    @Test("refresh_before is capped at half the token's life")
    func cappedAtHalf() {
        var cycle = DrivenLifeCycle()
        cycle.chance = 0.999
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1", expiresIn: 20))
        _ = cycle.use()
        #expect((10.0..<10.1).contains(cycle.wake ?? 0))
    }

    @Test("a token that nobody uses is not refreshed; its first use within the window refreshes it")
    func unusedIsNotRefreshed() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1"))
        cycle.pass(3580)
        #expect(cycle.fetches.count == 1)
        #expect(cycle.use() == "T1")
        #expect(cycle.fetches.count == 2)
        cycle.answer(DrivenLifeCycle.token("T2"))
        cycle.pass(4000)
        #expect(cycle.fetches.count == 2)
        #expect(cycle.events.last == .tokenLost(.expired))
        #expect(cycle.life.status(client: "c", grantType: "g", now: cycle.now).state == .idle)
    }

    @Test("a failing background refresh is retried while the token serves, and never serves it after expiry")
    func failingBackgroundRefresh() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1"))
        _ = cycle.use()
        cycle.pass(3555)
        var attempts = 0
        while cycle.now < cycle.begin + .seconds(3600) {
            if cycle.fetch != nil {
                cycle.answer(DrivenLifeCycle.status(500))
                attempts += 1
            }
            #expect(cycle.use() == "T1")
            cycle.pass(0.5)
        }
        #expect(attempts >= 3)
        #expect(cycle.use() == nil)
        #expect(cycle.events.last == .tokenLost(.expired) || cycle.events.contains(.tokenLost(.expired)))
        while cycle.fetch == nil { cycle.pass(0.5) }
        cycle.answer(DrivenLifeCycle.token("T2"))
        #expect(cycle.use() == "T2")
        #expect(cycle.life.failure == nil)
    }

    @Test("a failing background refresh keeps to its backoff, however much the token is used")
    func backgroundBackoff() {
        var cycle = DrivenLifeCycle(refreshBefore: .seconds(600))
        cycle.chance = 0.9
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1"))
        _ = cycle.use()
        cycle.pass(3060)
        var asked: [Double] = []
        while cycle.use() != nil, cycle.time < 3599 {
            if cycle.fetch != nil {
                asked.append(cycle.time)
                cycle.answer(DrivenLifeCycle.refused(.invalidClient))
            }
            cycle.pass(0.5)
        }
        // 9 s, 18 s, 36 s, 72 s, 144 s, 270 s
        #expect((5...7).contains(asked.count))
        #expect(zip(asked, asked.dropFirst()).allSatisfy { $1 - $0 > 8.9 })
    }

    @Test("start during the backoff of rejected tokens asks nothing early")
    func startWhileRejected() {
        var cycle = DrivenLifeCycle()
        cycle.chance = 0.9
        cycle.start()
        for _ in 0..<2 {
            while cycle.fetch == nil { cycle.pass(0.5) }
            cycle.answer(DrivenLifeCycle.token("T"))
            _ = cycle.use()
            cycle.reject()
        }
        let fetches = cycle.fetches.count
        cycle.life.start(cycle.moment(0.9))
        cycle.collect()
        cycle.pass(3)
        #expect(cycle.fetches.count == fetches)
        cycle.pass(1)
        #expect(cycle.fetches.count == fetches + 1)
    }

    // MARK: Waiting

    @Test("[40] each waiter has its own deadline and exactly one outcome; the fetch goes on")
    func deadlines() {
        var cycle = DrivenLifeCycle()
        let short = cycle.wait(1)
        let long = cycle.wait(5)
        let leaver = cycle.wait(5)
        cycle.load()
        #expect(cycle.fetches.count == 1)
        #expect(cycle.life.sends(1, now: cycle.now) == true)
        cycle.pass(1)
        #expect(cycle.outcomes[short] == .failure(.deadlineExceeded(retryAfter: .seconds(1))))
        cycle.life.leave(leaver)
        cycle.collect()
        #expect(cycle.outcomes[leaver] == .failure(.cancelled))
        #expect(cycle.cancelled.isEmpty)
        cycle.answer(DrivenLifeCycle.token("T1"), after: 2)
        #expect(cycle.outcomes[long]?.token == "T1")
        #expect(cycle.outcomes.count == 3)
    }

    @Test("[38] a 503 leaves waiters in line for the retry, those with time enough")
    func waitersStay() {
        var cycle = DrivenLifeCycle()
        cycle.chance = 0.99
        let short = cycle.wait(1)
        let long = cycle.wait(10)
        cycle.load()
        cycle.answer(DrivenLifeCycle.status(503, retryAfter: .seconds(3)))
        #expect(cycle.outcomes[short] == .failure(.tokenEndpointUnavailable(.status(503), retryAfter: .seconds(3))))
        #expect(cycle.outcomes[long] == nil)
        cycle.pass(3)
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.outcomes[long]?.token == "T1")
    }

    @Test("while it backs off, a burst gets the remembered failure at once and asks nothing")
    func rememberedFailure() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(DrivenLifeCycle.status(503, retryAfter: .seconds(20)))
        cycle.pass(5)
        for _ in 0..<100 {
            let id = cycle.wait(14)
            #expect(cycle.outcomes[id] == .failure(.tokenEndpointUnavailable(.status(503), retryAfter: .seconds(15))))
        }
        #expect(cycle.fetches.count == 1)
        cycle.pass(15)
        #expect(cycle.fetches.count == 2)
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.use() == "T1")
    }

    @Test("a failure that looks permanent is told to waiters at once and tried again less often")
    func permanent() {
        var cycle = DrivenLifeCycle()
        cycle.chance = 0.999
        let id = cycle.wait(3600)
        cycle.load()
        cycle.answer(DrivenLifeCycle.refused(.invalidClient, status: 401))
        #expect(cycle.outcomes[id]?.error?.fault == .refused(OAuthError(status: 401, code: .invalidClient)))
        #expect(cycle.eventNames == ["token_failed"])
        var gaps: [Double] = []
        for _ in 0..<8 {
            let before = cycle.time
            while cycle.fetch == nil { cycle.pass(1) }
            gaps.append(cycle.time - before)
            cycle.answer(DrivenLifeCycle.refused(.invalidClient, status: 401))
        }
        #expect(gaps == gaps.sorted())
        #expect(gaps[0] == 10 && gaps[7] == 300)
        while cycle.fetch == nil { cycle.pass(1) }
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.use() == "T1")
    }

    @Test("Retry-After is honoured, but never for longer than an hour")
    func retryAfter() {
        for (asked, kept) in [(120, 120.0), (10_000_000, 3600), (-5, 1)] {
            var cycle = DrivenLifeCycle()
            cycle.chance = 0
            cycle.start()
            cycle.answer(DrivenLifeCycle.status(429, retryAfter: .seconds(asked)))
            #expect(cycle.wake == kept)
        }
    }

    @Test("a fetch that never ends is given up, and another one begun")
    func stuckFetch() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        #expect(cycle.life.sends(1, now: cycle.now) == true)
        cycle.pass(15)
        #expect(cycle.cancelled == [1])
        #expect(cycle.events == [.tokenFailed(.tokenEndpointUnavailable(.stuck, retryAfter: .milliseconds(500)))])
        cycle.pass(1)
        #expect(cycle.fetches.count == 2)
        // The late answer to the first one is ignored.
        #expect(
            cycle.life.answered(1, DrivenLifeCycle.token("late"), cycle.moment(0))
                == nil)
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.use() == "T1")
    }

    // MARK: Never too often

    @Test("a life cycle begins at most one token request a second", arguments: [0.0, 1.0, 0.3, -5.0])
    func minimumInterval(expiresIn: Double) {
        var cycle = DrivenLifeCycle()
        cycle.chance = 0
        cycle.start()
        var asked: [Double] = []
        while cycle.time < 30 {
            if cycle.fetch != nil {
                asked.append(cycle.time)
                cycle.answer(DrivenLifeCycle.token("T", expiresIn: expiresIn))
            }
            cycle.wait(1)
            _ = cycle.use()
            cycle.pass(0.1)
        }
        #expect(zip(asked, asked.dropFirst()).allSatisfy { $1 - $0 >= 0.999 })
        #expect(asked.count <= 31 && asked.count >= 2)
    }

    // MARK: Rejected tokens

    @Test("a rejected token is never used again, and one new one is fetched for a burst of rejections")
    func rejection() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1"))
        _ = cycle.use()
        cycle.pass(100)
        let generation = cycle.life.token?.generation
        for _ in 0..<50 { cycle.reject(generation) }
        #expect(cycle.use() == nil)
        #expect(cycle.fetches.count == 2)
        let id = cycle.wait()
        cycle.answer(DrivenLifeCycle.token("T2"))
        #expect(cycle.outcomes[id]?.token == "T2")
        cycle.reject(generation)
        #expect(cycle.use() == "T2")
        #expect(cycle.fetches.count == 2)
        #expect(cycle.eventNames == ["token_acquired", "token_lost", "token_acquired"])
    }

    @Test("tokens rejected on their first use back off; one that was accepted does not")
    func firstUseRejections() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        var fetchesByMinute: [Int] = []
        for _ in 0..<5 {
            let before = cycle.fetches.count
            for _ in 0..<600 {
                if cycle.fetch != nil { cycle.answer(DrivenLifeCycle.token("T")) }
                if cycle.use() != nil { cycle.reject() } else { cycle.wait(0.05) }
                cycle.pass(0.1)
            }
            fetchesByMinute.append(cycle.fetches.count - before)
        }
        #expect(fetchesByMinute[0] <= 8)
        #expect(fetchesByMinute[4] <= 2)
        let id = cycle.wait()
        if case .failure(.rejectedByResource) = cycle.outcomes[id] {
        } else {
            Issue.record("\(cycle.outcomes[id] as Any)")
        }

        cycle.pass(400)
        cycle.wait()
        for _ in 0..<5 {
            while cycle.fetch == nil { cycle.pass(1) }
            cycle.answer(DrivenLifeCycle.token("T"))
            cycle.life.token?.noteAccepted()
            _ = cycle.use()
            cycle.reject()
        }
        #expect(cycle.life.rejectedUntil == nil)
    }

    // MARK: Refresh tokens

    @Test("[14] [15] [16] only invalid_grant discards a refresh token")
    func onlyInvalidGrantDiscards() {
        let faults: [TokenLifeCycle.Outcome] = [
            .fault(.network(.connect), retryAfter: nil), .fault(.network(.timeout), retryAfter: nil),
            DrivenLifeCycle.status(500), DrivenLifeCycle.status(503), DrivenLifeCycle.status(429),
            DrivenLifeCycle.status(403),
            DrivenLifeCycle.status(404), DrivenLifeCycle.status(400), DrivenLifeCycle.status(401),
            DrivenLifeCycle.refused(.invalidClient), DrivenLifeCycle.refused(.invalidScope),
            DrivenLifeCycle.refused(.invalidGrant, status: 500), DrivenLifeCycle.refused(.serverError),
            .fault(.answer(.notJSON), retryAfter: nil), .fault(.answer(.emptyBody), retryAfter: nil),
            .fault(.redirect(302), retryAfter: nil), DrivenLifeCycle.token("bad token"),
            DrivenLifeCycle.token("T", expiresIn: 0),
        ]
        for fault in faults {
            var cycle = DrivenLifeCycle(needs: .person)
            cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
            #expect(cycle.fetches == [.refresh(Secret("R1"))])
            cycle.answer(fault)
            #expect(cycle.life.refreshToken == Secret("R1"))
            #expect(!cycle.eventNames.contains("needs_authentication"))
            while cycle.fetch == nil { cycle.pass(1) }
            #expect(cycle.fetches.last == .refresh(Secret("R1")))
            cycle.answer(DrivenLifeCycle.token("T2", refreshToken: "R2"))
            #expect(cycle.use() == "T2")
            #expect(cycle.life.refreshToken == Secret("R2"))
        }
    }

    @Test("[60] invalid_grant: a grant that needs nobody starts afresh, for the same waiters")
    func invalidGrantUnattended() {
        var cycle = DrivenLifeCycle()
        let id = cycle.wait()
        cycle.load(cycle.record(nil, refreshToken: "R1"))
        let record = cycle.answer(DrivenLifeCycle.refused(.invalidGrant))
        #expect(record?.refreshToken == nil)
        #expect(cycle.outcomes[id] == nil)
        cycle.pass(1)
        #expect(cycle.fetches == [.refresh(Secret("R1")), .grant])
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.outcomes[id]?.token == "T1")
        #expect(!cycle.eventNames.contains("needs_authentication"))
    }

    @Test("[60] invalid_grant: an interactive grant needs a login, says so once, and asks nothing more")
    func invalidGrantInteractive() {
        var cycle = DrivenLifeCycle(needs: .person)
        let id = cycle.wait()
        cycle.load(cycle.record(nil, refreshToken: "R1"))
        cycle.answer(DrivenLifeCycle.refused(.invalidGrant))
        #expect(cycle.outcomes[id] == .failure(.needsAuthentication))
        cycle.pass(3600)
        let later = cycle.wait()
        #expect(cycle.outcomes[later] == .failure(.needsAuthentication))
        #expect(cycle.fetches.count == 1)
        #expect(cycle.eventNames == ["token_lost", "needs_authentication"])
    }

    @Test("a seeded refresh token that was refused is not sent again; a new one is")
    func seedSpent() {
        var cycle = DrivenLifeCycle(needs: .freshSeed)
        cycle.start()
        #expect(cycle.fetches == [.grant])
        #expect(cycle.life.sends(1, seed: Secret("R0"), now: cycle.now) == true)
        #expect(
            cycle.life.answered(
                1, DrivenLifeCycle.refused(.invalidGrant), cycle.moment)
                == nil)
        cycle.fetch = nil
        cycle.collect()
        #expect(cycle.life.spentRefreshToken == Secret("R0"))
        #expect(cycle.eventNames == ["needs_authentication"])
        let id = cycle.wait()
        #expect(cycle.outcomes[id] == .failure(.needsAuthentication))
        for _ in 0..<3 {
            while cycle.fetch == nil { cycle.pass(1) }
            cycle.answer(.seedSpent)
        }
        #expect(cycle.eventNames == ["needs_authentication"])
        while cycle.fetch == nil { cycle.pass(1) }
        cycle.answer(DrivenLifeCycle.token("T1", refreshToken: "R1"))
        #expect(cycle.use() == "T1")
        #expect(cycle.life.refreshToken == Secret("R1"))
    }
}
