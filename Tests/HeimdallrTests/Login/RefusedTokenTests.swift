import Testing

@testable import Heimdallr

@Suite struct `A token that a resource calls invalid, and only a person could bring another` {
    private func signedIn(refreshToken: String? = nil) throws -> DrivenLifeCycle {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T1", refreshToken: refreshToken))
        #expect(cycle.use() == "T1")
        cycle.events = []
        return cycle
    }

    @Test("after a refused token a sign-in is asked for once; the 401 passes, and nobody loses the token")
    func asked() throws {
        var cycle = try signedIn()
        for _ in 0..<3 { #expect(cycle.refused(saysInvalid: true) == false) }
        #expect(cycle.eventNames == ["needs_authentication"])
        #expect(cycle.status.state == .needsAuthentication)
        #expect(cycle.status.isTokenRefused)
        #expect(cycle.status.needsAuthenticationBecause?.contains("invalid_token") == true)
        #expect(cycle.use() == "T1", "another resource may still take it")
        #expect(cycle.fetches.isEmpty)
    }

    @Test("a 401 that does not say so changes nothing")
    func silent() throws {
        var cycle = try signedIn()
        #expect(cycle.refused(saysInvalid: false) == false)
        #expect(cycle.events.isEmpty)
        #expect(cycle.status.state == .ready)
    }

    @Test("behind a dead refresh token every refusal is told at once, and requests still get the need for a sign-in")
    func deadRefreshToken() throws {
        for saysInvalid in [true, false] {
            var cycle = try signedIn(refreshToken: "R1")
            cycle.waitForRefresh()
            cycle.pass(2)
            cycle.answer(DrivenLifeCycle.refused(.invalidGrant))
            #expect(cycle.eventNames == ["token_lost", "needs_authentication"])
            #expect(cycle.status.state == .needsAuthentication, "told at once")
            #expect(cycle.status.isServedAfterLoss && cycle.use() == "T1", "the token still serves")
            #expect(cycle.status.cause != nil)
            #expect(cycle.refused(saysInvalid: saysInvalid) == false)
            #expect(cycle.status.state == .needsAuthentication)
            #expect(cycle.status.isTokenRefused)
            #expect(cycle.status.needsAuthenticationBecause?.contains("invalid_grant") == true)
            #expect(cycle.life.announcedNeed && cycle.life.held?.announcedNeed == false, "requests get 503")
            try cycle.logIn(DrivenLifeCycle.response("T2"))
            #expect(cycle.status.state == .ready)
        }
    }

    @Test("a failed sign-in is told until there is a token, and its end is no scope that was never granted")
    func failedSignIn() throws {
        var cycle = try signedIn(refreshToken: "R1")
        cycle.life.loginFailed(.refused(OAuthError(status: 400, code: .accessDenied, detail: "no")), cycle.moment)
        cycle.pass(3)
        #expect(cycle.status.lastLoginError == .refused(OAuthError(status: 400, code: .accessDenied, detail: "no")))
        #expect(cycle.status.sinceLastLoginError == .seconds(3))
        try cycle.logIn(DrivenLifeCycle.response("T2", refreshToken: "R2"))
        #expect(cycle.status.lastLoginError == nil)
        var status = cycle.status
        status.hasRefreshToken = false
        status.noteScope(wanted: ["offline_access"])
        #expect(status.scopeNotGranted == ["offline_access"])
        status.cause = .status(400)
        status.noteScope(wanted: ["offline_access"])
        #expect(status.scopeNotGranted.isEmpty)
    }

    @Test("a refused token with a refresh token asks nobody to sign in")
    func refreshed() throws {
        var cycle = try signedIn(refreshToken: "R1")
        #expect(cycle.refused(saysInvalid: true) == true)
        #expect(cycle.eventNames == [])
        #expect(cycle.status.state == .ready)
        cycle.pass(2)
        cycle.answer(DrivenLifeCycle.token("T2"))
        #expect(cycle.refused(saysInvalid: true, isReplay: true) == false)
        #expect(cycle.status.state == .ready)
        #expect(cycle.eventNames == ["token_refreshed"])
    }

    @Test("a new sign-in ends the refusal, and its token may be refused in its turn")
    func again() throws {
        var cycle = try signedIn()
        _ = cycle.refused(saysInvalid: true)
        try cycle.logIn(DrivenLifeCycle.response("T2"))
        #expect(cycle.status.state == .ready)
        #expect(!cycle.status.isTokenRefused)
        _ = cycle.refused(saysInvalid: true)
        #expect(cycle.eventNames == ["needs_authentication", "token_acquired", "needs_authentication"])
        #expect(cycle.status.state == .needsAuthentication)
    }

    @Test("the expiry of a refused token says nothing a second time")
    func expiry() throws {
        var cycle = try signedIn()
        _ = cycle.refused(saysInvalid: true)
        cycle.pass(4000)
        #expect(cycle.use() == nil)
        #expect(cycle.eventNames == ["needs_authentication", "token_lost"])
        #expect(cycle.status.state == .needsAuthentication)
        #expect(!cycle.status.isTokenRefused)
    }

    @Test("a sign-in at another process takes the place of a refused token")
    func elsewhere() throws {
        var cycle = try signedIn()
        _ = cycle.refused(saysInvalid: true)
        #expect(cycle.readings == [.start, .login])
        cycle.life.looked(cycle.record("T2", revision: 9), cycle.moment)
        cycle.collect()
        #expect(cycle.use() == "T2")
        #expect(cycle.status.state == .ready)
    }
}

extension DrivenLifeCycle {
    fileprivate mutating func refused(saysInvalid: Bool, isReplay: Bool = false) -> Bool {
        guard let generation = life.token?.generation else { return false }
        let isWorthwhile = life.refused(generation, by: "a", saysInvalid: saysInvalid, isReplay: isReplay, moment)
        collect()
        return isWorthwhile
    }
}
