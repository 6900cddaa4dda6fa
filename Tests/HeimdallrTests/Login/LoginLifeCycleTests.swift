import Testing

@testable import Heimdallr

@Suite struct `A login and the life cycle` {
    @Test("a login ends needs_authentication: the record first, then the token, its event and whoever waits")
    func ends() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        #expect(rig.eventNames == ["needs_authentication"])
        #expect(rig.status.state == .needsAuthentication)
        let login = try rig.loggedIn(LifeCycleRig.response("T1", refreshToken: "R1"), as: "ada@example.com")
        #expect(login.record.accessToken == Secret("T1"))
        #expect(login.record.refreshToken == Secret("R1"))
        #expect(login.record.signIn == SignIn(idToken: Secret("header.payload.signature"), name: "ada@example.com"))
        #expect(rig.use() == nil, "not before it is durable")
        #expect(rig.eventNames == ["needs_authentication"])
        #expect(rig.loginSaved(login) == true)
        #expect(rig.use() == "T1")
        #expect(rig.eventNames == ["needs_authentication", "token_acquired"])
        #expect(rig.status.state == .ready)
        #expect(rig.status.signedInAs == "ada@example.com")
        #expect(rig.status.lastError == nil)
        #expect(rig.fetches.isEmpty)
    }

    @Test("a login before the store was read is not overwritten by what was in it")
    func whileLoading() throws {
        var rig = LifeCycleRig(needs: .person)
        let waiter = rig.wait()
        let login = try rig.loggedIn(LifeCycleRig.response("NEW", refreshToken: "R2"), over: 7)
        #expect(login.record.revision == 8)
        rig.loginSaved(login)
        #expect(rig.outcomes[waiter]?.token == "NEW")
        rig.load(rig.record("OLD", refreshToken: "R1", revision: 7))
        #expect(rig.use() == "NEW")
        #expect(rig.life.refreshToken == Secret("R2"))
    }

    @Test("a login that can't be saved serves from memory, and saving is tried again")
    func unsaved() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        let login = try rig.loggedIn(LifeCycleRig.response("T1"))
        #expect(rig.loginSaved(login, fault: "disk full") == true)
        #expect(rig.use() == "T1")
        #expect(rig.status.storeFault == "disk full")
        rig.pass(40)
        #expect(rig.resaves == [login.record])
    }

    @Test("[21] the login wins over a refresh that was begun: it is not sent, and its old result is nobody's")
    func race() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start(stored: rig.record("OLD", expiresIn: 30, refreshToken: "R-old"))
        _ = rig.use()
        rig.pass(29)
        let fetch = try #require(rig.fetch)
        #expect(fetch.kind == .refresh(Secret("R-old")))
        let login = try rig.loggedIn(LifeCycleRig.response("NEW", refreshToken: "R-new"), over: 7)
        rig.loginSaved(login)
        #expect(rig.cancelled == [fetch.id])
        #expect(rig.life.began(fetch.id, now: rig.now) == false, "the old refresh token is not sent any more")
        let late = rig.life.answered(
            fetch.id, LifeCycleRig.token("LATE", refreshToken: "R-late"), now: rig.now, wallClock: rig.wall,
            random: { 0.5 })
        rig.collect()
        #expect(late == nil)
        #expect(rig.use() == "NEW")
        #expect(rig.life.refreshToken == Secret("R-new"))
    }

    @Test("[21] a refresh begun while the login's record is being saved spends nothing")
    func raceWhileSaving() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start(stored: rig.record("OLD", expiresIn: 5, refreshToken: "R-old"))
        let login = try rig.loggedIn(LifeCycleRig.response("NEW", refreshToken: "R-new"), over: 7)
        rig.pass(6)
        let waiter = rig.wait()
        let fetch = try #require(rig.fetch)
        rig.loginSaved(login)
        #expect(rig.cancelled == [fetch.id])
        #expect(rig.outcomes[waiter]?.token == "NEW")
    }

    @Test("a logout while the login's record is being saved: the token never comes up")
    func overtaken() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        let login = try rig.loggedIn(LifeCycleRig.response("T1", refreshToken: "R1"))
        rig.life.clear(now: rig.now, random: { 0.5 })
        rig.collect()
        #expect(rig.loginSaved(login) == false)
        #expect(rig.use() == nil)
        #expect(rig.life.refreshToken == nil)
        #expect(rig.life.unsaved == nil)
    }

    @Test("a token that is of no use changes nothing")
    func useless() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start(stored: rig.record("OLD", refreshToken: "R1"))
        for (response, error) in [
            (LifeCycleRig.response("a b"), TokenResponseError.badAccessToken),
            (LifeCycleRig.response("T2", expiresIn: 0), .alreadyExpired),
        ] {
            var life = rig.life
            #expect(throws: error) {
                try life.loggedIn(
                    response, as: nil, askedAt: rig.now, over: 0, now: rig.now, wallClock: rig.wall)
            }
            rig.life = life
        }
        #expect(rig.use() == "OLD")
        #expect(rig.life.refreshToken == Secret("R1"))
        #expect(rig.life.revision == 7)
    }

    @Test("an earlier login's refresh token, which may be another person's, does not stay behind")
    func otherPerson() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("ADA", refreshToken: "R-ada"), as: "ada")
        try rig.logIn(LifeCycleRig.response("BOB"), as: "bob")
        #expect(rig.life.refreshToken == nil)
        #expect(rig.status.signedInAs == "bob")
    }

    @Test("who is signed in stays through refreshes and restarts, and goes with the grant")
    func signedIn() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T1", expiresIn: 100, refreshToken: "R1"), as: "ada")
        _ = rig.use()
        rig.pass(99)
        let answer = rig.answer(LifeCycleRig.token("T2", refreshToken: "R2"))
        let record = try #require(answer)
        #expect(record.signIn?.name == "ada")
        #expect(rig.status.signedInAs == "ada")

        var next = LifeCycleRig(needs: .person)
        next.start(stored: record)
        #expect(next.status.signedInAs == "ada")
        next.life.invalidate(now: next.now, random: { 0.5 })
        next.wait()
        next.answer(LifeCycleRig.refused(.invalidGrant))
        #expect(next.status.signedInAs == nil)
        #expect(next.eventNames.suffix(2) == ["token_lost", "needs_authentication"])
    }

    @Test("a login without a refresh token serves until it expires, and then somebody has to log in again")
    func noRefreshToken() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T1", expiresIn: 60))
        _ = rig.use()
        rig.pass(59)
        #expect(rig.use() == "T1")
        rig.pass(2)
        #expect(rig.use() == nil)
        #expect(rig.fetches.isEmpty)
        #expect(rig.eventNames == ["needs_authentication", "token_acquired", "token_lost", "needs_authentication"])
    }

    @Test(
        "a login at another process on the same store is noticed by whoever wants a token, and looked for now and then")
    func elsewhere() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        for _ in 0..<10 { rig.wait() }
        #expect(rig.looks == 1)
        rig.life.looked(nil, now: rig.now, wallClock: rig.wall, random: { 0.5 })
        rig.pass(4)
        rig.wait()
        #expect(rig.looks == 1)
        rig.pass(1)
        rig.wait()
        #expect(rig.looks == 2)
        let record = rig.record("T7", refreshToken: "R7")
        rig.life.looked(record, now: rig.now, wallClock: rig.wall, random: { 0.5 })
        rig.collect()
        #expect(rig.use() == "T7")
        #expect(rig.eventNames == ["needs_authentication", "token_acquired"])
        // What we have is not given up for what lies there.
        rig.life.looked(
            rig.record("T8", revision: 8), now: rig.now, wallClock: rig.wall, random: { 0.5 })
        #expect(rig.use() == "T7")

        // What was refused here is not taken up again, though it still lies there: the disk was full.
        var refused = LifeCycleRig(needs: .person)
        let old = refused.record(nil, refreshToken: "R1", revision: 7)
        refused.start(stored: old)
        refused.answer(LifeCycleRig.refused(.invalidGrant), saving: "disk full")
        refused.life.looked(old, now: refused.now, wallClock: refused.wall, random: { 0.5 })
        refused.collect()
        #expect(refused.life.refreshToken == nil)
        // After a logout and a restart elsewhere, the count begins anew.
        let new = refused.record("T1", refreshToken: "R2", revision: 1)
        refused.life.looked(new, now: refused.now, wallClock: refused.wall, random: { 0.5 })
        refused.collect()
        #expect(refused.use() == "T1")
        refused.pass(60)
        #expect(refused.resaves.isEmpty, "our empty record does not go over the other's")

        var nobody = LifeCycleRig()
        nobody.start()
        nobody.answer(LifeCycleRig.refused(.invalidClient))
        nobody.wait()
        #expect(nobody.looks == 0)
    }

    // MARK: The button

    @Test("refresh now: at once while the token is good, but never within the minimum interval")
    func button() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T1", refreshToken: "R1"))
        rig.life.refreshNow(now: rig.now, random: { 0.5 })
        rig.collect()
        #expect(rig.fetches.isEmpty)
        rig.pass(1)
        #expect(rig.fetches == [.refresh(Secret("R1"))])
        rig.answer(LifeCycleRig.token("T2", refreshToken: "R2"))
        #expect(rig.use() == "T2")
    }

    @Test("refresh now: ends a backoff, but not what the server asked for; a client that needs a login asks nothing")
    func buttonInBackoff() throws {
        var rig = LifeCycleRig()
        rig.chance = 1
        rig.start()
        rig.answer(LifeCycleRig.refused(.invalidClient, status: 401))
        rig.pass(2)
        rig.life.refreshNow(now: rig.now, random: { 1 })
        rig.collect()
        #expect(rig.fetches.count == 2)
        rig.answer(LifeCycleRig.status(503, retryAfter: .seconds(20)))
        rig.pass(10)
        rig.life.refreshNow(now: rig.now, random: { 1 })
        rig.collect()
        #expect(rig.fetches.count == 2)
        rig.pass(10)
        #expect(rig.fetches.count == 3)

        var person = LifeCycleRig(needs: .person)
        person.start()
        person.life.refreshNow(now: person.now, random: { 0.5 })
        person.collect()
        person.pass(100)
        #expect(person.fetches.isEmpty)
    }
}
