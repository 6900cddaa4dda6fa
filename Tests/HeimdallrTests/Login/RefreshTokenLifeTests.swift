import Testing

@testable import Heimdallr

@Suite struct `A refresh token's own life` {
    private func announced(_ rig: LifeCycleRig) -> [Duration] {
        rig.events.compactMap { if case .refreshTokenEnding(let left) = $0 { left } else { nil } }
    }

    @Test("days before a refresh token ends it is used, to see whether that helps; if not, that is said, once")
    func warning() throws {
        let day = 24 * 3600.0
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T0", expiresIn: 10 * day, refreshToken: "R0", refreshLife: 90 * day))
        #expect(rig.status.refreshTokenExpiresIn == .seconds(90 * day))
        func refresh(left: Double) {
            let token = LifeCycleRig.response("T", expiresIn: 10 * day, refreshToken: "R", refreshLife: left)
            rig.answer(.response(token))
        }
        // The session's end does not move.
        for week in 1...11 {
            rig.life.invalidate(now: rig.now, random: { 0.5 })
            rig.pass(7 * day)
            rig.wait()
            refresh(left: 90 * day - Double(week) * 7 * day)
        }
        #expect(announced(rig).isEmpty)
        rig.fetches = []
        rig.pass(6 * day)
        #expect(rig.fetches == [.refresh(Secret("R"))], "nobody wants a token, and it is tried all the same")
        #expect(announced(rig).isEmpty)
        refresh(left: 7 * day)
        #expect(announced(rig) == [.seconds(7 * day)])
        rig.life.invalidate(now: rig.now, random: { 0.5 })
        rig.pass(5)
        rig.wait()
        refresh(left: 7 * day - 5)
        rig.pass(6 * day)
        #expect(announced(rig).count == 1)
    }

    @Test("a session that lasts longer when it is used does not end because nobody wants a token: one login is enough")
    func sliding() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T0", expiresIn: 60, refreshToken: "R0", refreshLife: 1800))
        for hour in 1...100 {
            rig.pass(1349)
            #expect(rig.fetch == nil)
            rig.pass(1)
            #expect(rig.fetch?.kind == .refresh(Secret("R\(hour - 1)")))
            rig.answer(
                .response(LifeCycleRig.response("T\(hour)", expiresIn: 60, refreshToken: "R\(hour)", refreshLife: 1800))
            )
        }
        #expect(announced(rig).isEmpty)
        #expect(rig.fetches.count == 100)
    }

    @Test("a server that can't be asked just then: said at once, and it is tried again")
    func warningWithoutServer() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T0", expiresIn: 60, refreshToken: "R0", refreshLife: 1800))
        rig.pass(1350)
        rig.answer(LifeCycleRig.status(503))
        #expect(announced(rig) == [.seconds(450)])
        rig.pass(60)
        #expect(rig.fetches.count == 2)
        rig.answer(.response(LifeCycleRig.response("T1", expiresIn: 60, refreshToken: "R1", refreshLife: 1800)))
        rig.pass(1350)
        #expect(rig.fetches.count == 3, "the new life has its own end")
    }

    @Test("a refresh token that lives for less than five minutes is not kept alive, only announced")
    func short() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T0", expiresIn: 60, refreshToken: "R0", refreshLife: 200))
        rig.pass(150)
        #expect(rig.fetches.isEmpty)
        #expect(announced(rig) == [.seconds(50)])
    }

    @Test("a life of 0 has no end, and an absurd one is no trap", arguments: [0, -1, 1e300, .nan, .infinity])
    func endless(seconds: Double) throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        try rig.logIn(LifeCycleRig.response("T1", refreshToken: "R1", refreshLife: seconds))
        #expect((rig.status.refreshTokenExpiresIn == nil) == !(seconds > 0))
        rig.pass(3000)
        #expect(rig.use() == "T1")
    }

    @Test("the refresh token's end outlives a restart")
    func recorded() throws {
        var rig = LifeCycleRig(needs: .person)
        rig.start()
        let login = try rig.loggedIn(LifeCycleRig.response("T1", refreshToken: "R1", refreshLife: 4000))
        #expect(
            login.record.refreshTokenLife
                == TokenRecord.RefreshTokenLife(issuedAt: rig.wall, expiresAt: rig.wall + 4000))
        var next = LifeCycleRig(needs: .person)
        next.wall += 3100
        next.start(stored: login.record)
        #expect(next.status.refreshTokenExpiresIn == .seconds(900))
        #expect(next.fetch != nil)
        next.answer(LifeCycleRig.status(500))
        #expect(announced(next) == [.seconds(900)])
        for absurd in [Int64.min, .max] {
            var record = login.record
            record.refreshTokenLife = TokenRecord.RefreshTokenLife(issuedAt: absurd, expiresAt: 0 &- absurd)
            var odd = LifeCycleRig(needs: .person)
            odd.start(stored: record)
            odd.pass(100)
        }
    }
}
