import Testing

@testable import Heimdallr

@Suite struct `A login and the life cycle` {
    @Test("a login ends needs_authentication, with the record first, then the token, its event and the callers")
    func ends() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        #expect(cycle.eventNames == ["needs_authentication"])
        #expect(cycle.status.state == .needsAuthentication)
        let login = try cycle.loggedIn(DrivenLifeCycle.response("T1", refreshToken: "R1"), as: "ada@example.com")
        #expect(login.record.accessToken == Secret("T1"))
        #expect(login.record.refreshToken == Secret("R1"))
        #expect(login.record.signIn == SignIn(idToken: Secret("header.payload.signature"), name: "ada@example.com"))
        #expect(cycle.use() == nil, "not before it is durable")
        #expect(cycle.eventNames == ["needs_authentication"])
        #expect(cycle.loginSaved(login) == true)
        #expect(cycle.use() == "T1")
        #expect(cycle.eventNames == ["needs_authentication", "token_acquired"])
        #expect(cycle.status.state == .ready)
        #expect(cycle.status.signedInAs == "ada@example.com")
        #expect(cycle.status.lastError == nil)
        #expect(cycle.fetches.isEmpty)
    }

    @Test("a login before the store was read is not overwritten by what was in it")
    func whileLoading() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        let waiter = cycle.wait()
        let login = try cycle.loggedIn(DrivenLifeCycle.response("NEW", refreshToken: "R2"), over: 7)
        #expect(login.record.revision == 8)
        cycle.loginSaved(login)
        #expect(cycle.outcomes[waiter]?.token == "NEW")
        cycle.load(cycle.record("OLD", refreshToken: "R1", revision: 7))
        #expect(cycle.use() == "NEW")
        #expect(cycle.life.refreshToken == Secret("R2"))
    }

    @Test("a login that can't be saved serves from memory, and saving is tried again")
    func unsaved() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        let login = try cycle.loggedIn(DrivenLifeCycle.response("T1"))
        #expect(cycle.loginSaved(login, fault: "disk full") == true)
        #expect(cycle.use() == "T1")
        #expect(cycle.status.storeFault == "disk full")
        cycle.pass(40)
        #expect(cycle.resaves == [login.record])
    }

    @Test("[21] the login wins over a refresh that was begun: it is not sent, and its old result is nobody's")
    func race() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record("OLD", expiresIn: 30, refreshToken: "R-old"))
        _ = cycle.use()
        cycle.pass(29)
        let fetch = try #require(cycle.fetch)
        #expect(fetch.kind == .refresh(Secret("R-old")))
        let login = try cycle.loggedIn(DrivenLifeCycle.response("NEW", refreshToken: "R-new"), over: 7)
        cycle.loginSaved(login)
        #expect(cycle.cancelled == [fetch.id])
        #expect(cycle.life.sends(fetch.id, now: cycle.now) == false, "the old refresh token is not sent any more")
        let late = cycle.life.answered(fetch.id, DrivenLifeCycle.token("LATE", refreshToken: "R-late"), cycle.moment)
        cycle.collect()
        #expect(late == nil)
        #expect(cycle.use() == "NEW")
        #expect(cycle.life.refreshToken == Secret("R-new"))
    }

    @Test("[21] a refresh begun while the login's record is being saved spends nothing")
    func raceWhileSaving() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record("OLD", expiresIn: 5, refreshToken: "R-old"))
        let login = try cycle.loggedIn(DrivenLifeCycle.response("NEW", refreshToken: "R-new"), over: 7)
        cycle.pass(6)
        let waiter = cycle.wait()
        let fetch = try #require(cycle.fetch)
        cycle.loginSaved(login)
        #expect(cycle.cancelled == [fetch.id])
        #expect(cycle.outcomes[waiter]?.token == "NEW")
    }

    @Test("a logout while the login's record is being saved: the token never comes up")
    func overtaken() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        let login = try cycle.loggedIn(DrivenLifeCycle.response("T1", refreshToken: "R1"))
        cycle.life.clear(cycle.moment)
        cycle.collect()
        #expect(cycle.loginSaved(login) == false)
        #expect(cycle.use() == nil)
        #expect(cycle.life.refreshToken == nil)
        #expect(cycle.life.unsaved == nil)
    }

    @Test("the token of a login that is of no use changes nothing")
    func useless() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record("OLD", refreshToken: "R1"))
        for (response, error) in [
            (DrivenLifeCycle.response("a b"), TokenResponseError.badAccessToken),
            (DrivenLifeCycle.response("T2", expiresIn: 0), .alreadyExpired),
        ] {
            var life = cycle.life
            #expect(throws: error) {
                try life.loggedIn(response, as: nil, askedAt: cycle.now, over: 0, cycle.moment)
            }
            cycle.life = life
        }
        #expect(cycle.use() == "OLD")
        #expect(cycle.life.refreshToken == Secret("R1"))
        #expect(cycle.life.revision == 7)
    }

    @Test("an earlier login's refresh token, which may be another person's, does not stay behind")
    func otherPerson() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("ADA", refreshToken: "R-ada"), as: "ada")
        try cycle.logIn(DrivenLifeCycle.response("BOB"), as: "bob")
        #expect(cycle.life.refreshToken == nil)
        #expect(cycle.status.signedInAs == "bob")
    }

    @Test("the person who is signed in stays through refreshes and restarts, and goes with the grant")
    func signedIn() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T1", expiresIn: 100, refreshToken: "R1"), as: "ada")
        _ = cycle.use()
        cycle.pass(99)
        let answer = cycle.answer(DrivenLifeCycle.token("T2", refreshToken: "R2"))
        let record = try #require(answer)
        #expect(record.signIn?.name == "ada")
        #expect(cycle.status.signedInAs == "ada")

        var next = DrivenLifeCycle(needs: .person)
        next.start(stored: record)
        #expect(next.status.signedInAs == "ada")
        next.life.invalidate(next.moment)
        next.wait()
        next.answer(DrivenLifeCycle.refused(.invalidGrant))
        #expect(next.status.signedInAs == nil)
        #expect(next.eventNames.suffix(2) == ["token_lost", "needs_authentication"])
    }

    @Test("a login without a refresh token serves until it expires, and then somebody has to log in again")
    func noRefreshToken() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T1", expiresIn: 60))
        _ = cycle.use()
        cycle.pass(59)
        #expect(cycle.use() == "T1")
        cycle.pass(2)
        #expect(cycle.use() == nil)
        #expect(cycle.fetches.isEmpty)
        #expect(cycle.eventNames == ["needs_authentication", "token_acquired", "token_lost", "needs_authentication"])
    }

    @Test(
        "a login at another process on the same store is noticed by whoever wants a token, and looked for now and then")
    func elsewhere() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        for _ in 0..<10 { cycle.wait() }
        #expect(cycle.readings == [.start, .login])
        cycle.life.looked(nil, cycle.moment)
        cycle.pass(4)
        cycle.wait()
        #expect(cycle.readings == [.start, .login])
        cycle.pass(1)
        cycle.wait()
        #expect(cycle.readings == [.start, .login, .login])
        let record = cycle.record("T7", refreshToken: "R7")
        cycle.life.looked(record, cycle.moment)
        cycle.collect()
        #expect(cycle.use() == "T7")
        #expect(cycle.eventNames == ["needs_authentication", "token_acquired"])
        // What we have is not given up for what lies there.
        cycle.life.looked(cycle.record("T8", revision: 8), cycle.moment)
        #expect(cycle.use() == "T7")

        // What was refused here is not taken up again, though it still lies there: the disk was full.
        var refused = DrivenLifeCycle(needs: .person)
        let old = refused.record(nil, refreshToken: "R1", revision: 7)
        refused.start(stored: old)
        refused.answer(DrivenLifeCycle.refused(.invalidGrant), saving: "disk full")
        refused.life.looked(old, refused.moment)
        refused.collect()
        #expect(refused.life.refreshToken == nil)
        // After a logout and a restart elsewhere, the count begins anew.
        let new = refused.record("T1", refreshToken: "R2", revision: 1)
        refused.life.looked(new, refused.moment)
        refused.collect()
        #expect(refused.use() == "T1")
        refused.pass(60)
        #expect(refused.resaves.isEmpty, "our empty record does not go over the other's")

        var nobody = DrivenLifeCycle()
        nobody.start()
        nobody.answer(DrivenLifeCycle.refused(.invalidClient))
        nobody.wait()
        #expect(nobody.readings == [.start])
    }

    // MARK: The button

    @Test("a refresh on demand comes at once while the token is good, but never within the minimum interval")
    func button() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T1", refreshToken: "R1"))
        cycle.life.refreshNow(cycle.moment)
        cycle.collect()
        #expect(cycle.fetches.isEmpty)
        cycle.pass(1)
        #expect(cycle.fetches == [.refresh(Secret("R1"))])
        cycle.answer(DrivenLifeCycle.token("T2", refreshToken: "R2"))
        #expect(cycle.use() == "T2")
    }

    @Test("a refresh on demand ends a backoff, but not the server's pause; without a login nothing is asked")
    func buttonInBackoff() throws {
        var cycle = DrivenLifeCycle()
        cycle.chance = 1
        cycle.start()
        cycle.answer(DrivenLifeCycle.refused(.invalidClient, status: 401))
        cycle.pass(2)
        cycle.life.refreshNow(cycle.moment)
        cycle.collect()
        #expect(cycle.fetches.count == 2)
        cycle.answer(DrivenLifeCycle.status(503, retryAfter: .seconds(20)))
        cycle.pass(10)
        cycle.life.refreshNow(cycle.moment)
        cycle.collect()
        #expect(cycle.fetches.count == 2)
        cycle.pass(10)
        #expect(cycle.fetches.count == 3)

        var person = DrivenLifeCycle(needs: .person)
        person.start()
        person.life.refreshNow(person.moment)
        person.collect()
        person.pass(100)
        #expect(person.fetches.isEmpty)
    }

    @Test("a caller for a new token gets the first outcome of the request under way, or of a new one")
    func waitingForTheButton() throws {
        var cycle = DrivenLifeCycle()
        cycle.chance = 1
        cycle.start()
        let early = cycle.waitForRefresh()
        #expect(cycle.fetches.count == 1, "the one that is under way is waited for")
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(try cycle.outcomes[early]?.get().value == Secret("T1"))
        cycle.pass(5)
        let fresh = cycle.waitForRefresh()
        let second = cycle.waitForRefresh()
        #expect(cycle.fetches.count == 2, "one request for both")
        cycle.answer(DrivenLifeCycle.token("T2"))
        for id in [fresh, second] { #expect(try cycle.outcomes[id]?.get().value == Secret("T2")) }
        let tooSoon = cycle.waitForRefresh()
        #expect(cycle.fetches.count == 2)
        cycle.pass(1)
        #expect(cycle.fetches.count == 3, "at the minimum interval")
        cycle.answer(DrivenLifeCycle.status(503, retryAfter: .seconds(20)))
        #expect(throws: HeimdallrError.self) { try cycle.outcomes[tooSoon]?.get() }
        #expect(cycle.use() == "T2", "the old one serves on")
        let asked = cycle.waitForRefresh(10)
        guard case .failure(.tokenEndpointUnavailable(_, let wait)) = cycle.outcomes[asked] else {
            Issue.record("\(String(describing: cycle.outcomes[asked]))")
            return
        }
        #expect(wait > .seconds(10), "nobody waits for what the server put off for longer")
        let patient = cycle.waitForRefresh(30)
        cycle.pass(21)
        cycle.answer(DrivenLifeCycle.token("T3"))
        #expect(try cycle.outcomes[patient]?.get().value == Secret("T3"))
        cycle.pass(2)
        let slow = cycle.waitForRefresh(5)
        cycle.pass(6)
        #expect(throws: HeimdallrError.self) { try cycle.outcomes[slow]?.get() }
        #expect(cycle.use() == "T3")

        var person = DrivenLifeCycle(needs: .person)
        person.start()
        let nobody = person.waitForRefresh()
        #expect(throws: HeimdallrError.needsAuthentication) { try person.outcomes[nobody]?.get() }
        #expect(person.fetches.isEmpty)
    }
}
