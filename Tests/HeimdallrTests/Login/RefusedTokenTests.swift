import Testing

@testable import Heimdallr

@Suite struct `A token that a resource calls invalid, and only a person could bring another` {
    private func signedIn(refreshToken: String? = nil) throws -> LifeCycleRig {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T1", refreshToken: refreshToken))
        #expect(rig.use() == "T1")
        rig.events = []
        return rig
    }

    @Test("somebody is asked to sign in, once; the 401 stands, and nobody loses the token")
    func asked() throws {
        var rig = try signedIn()
        for _ in 0..<3 { #expect(rig.refused(saysInvalid: true) == false) }
        #expect(rig.eventNames == ["needs_authentication"])
        #expect(rig.status.state == .needsAuthentication)
        #expect(rig.status.isTokenRefused)
        #expect(rig.status.needsAuthenticationBecause?.contains("invalid_token") == true)
        #expect(rig.use() == "T1", "another resource may still take it")
        #expect(rig.fetches.isEmpty)
    }

    @Test("a 401 that does not say so changes nothing")
    func silent() throws {
        var rig = try signedIn()
        #expect(rig.refused(saysInvalid: false) == false)
        #expect(rig.events.isEmpty)
        #expect(rig.status.state == .ready)
    }

    @Test("where there is a refresh token, nobody is asked")
    func refreshed() throws {
        var rig = try signedIn(refreshToken: "R1")
        #expect(rig.refused(saysInvalid: true) == true)
        #expect(rig.eventNames == [])
        #expect(rig.status.state == .ready)
        rig.pass(2)
        rig.answer(LifeCycleRig.token("T2"))
        #expect(rig.refused(saysInvalid: true, isReplay: true) == false)
        #expect(rig.status.state == .ready)
        #expect(rig.eventNames == ["token_refreshed"])
    }

    @Test("a new sign-in ends it, and the next one may be refused in its turn")
    func again() throws {
        var rig = try signedIn()
        _ = rig.refused(saysInvalid: true)
        try rig.logIn(LifeCycleRig.response("T2"))
        #expect(rig.status.state == .ready)
        #expect(!rig.status.isTokenRefused)
        _ = rig.refused(saysInvalid: true)
        #expect(rig.eventNames == ["needs_authentication", "token_acquired", "needs_authentication"])
        #expect(rig.status.state == .needsAuthentication)
    }

    @Test("its expiry says nothing a second time")
    func expiry() throws {
        var rig = try signedIn()
        _ = rig.refused(saysInvalid: true)
        rig.pass(4000)
        #expect(rig.use() == nil)
        #expect(rig.eventNames == ["needs_authentication", "token_lost"])
        #expect(rig.status.state == .needsAuthentication)
        #expect(!rig.status.isTokenRefused)
    }

    @Test("a sign-in at another process is taken up in its place")
    func elsewhere() throws {
        var rig = try signedIn()
        _ = rig.refused(saysInvalid: true)
        #expect(rig.looks == 1)
        rig.life.looked(
            rig.record("T2", revision: 9), now: rig.now, wallClock: rig.wall, random: { 0.5 })
        rig.collect()
        #expect(rig.use() == "T2")
        #expect(rig.status.state == .ready)
    }
}

extension LifeCycleRig {
    fileprivate mutating func refused(saysInvalid: Bool, isReplay: Bool = false) -> Bool {
        guard let generation = life.token?.generation else { return false }
        let isWorthwhile = life.refused(
            generation, by: "a", saysInvalid: saysInvalid, isReplay: isReplay, now: now, random: { [chance] in chance })
        collect()
        return isWorthwhile
    }
}
