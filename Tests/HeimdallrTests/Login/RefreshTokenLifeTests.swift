import Testing

@testable import Heimdallr

@Suite struct `A refresh token's own life` {
    private func announced(_ cycle: DrivenLifeCycle) -> [Duration] {
        cycle.events.compactMap { if case .refreshTokenEnding(let left) = $0 { left } else { nil } }
    }

    @Test("days before a refresh token ends it is used, to see whether that helps; if not, that is said, once")
    func warning() throws {
        let day = 24 * 3600.0
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T0", expiresIn: 10 * day, refreshToken: "R0", refreshLife: 90 * day))
        #expect(cycle.status.refreshTokenExpiresIn == .seconds(90 * day))
        func refresh(left: Double) {
            let token = DrivenLifeCycle.response("T", expiresIn: 10 * day, refreshToken: "R", refreshLife: left)
            cycle.answer(.response(token))
        }
        // The session's end does not move.
        for week in 1...11 {
            cycle.life.invalidate(cycle.moment)
            cycle.pass(7 * day)
            cycle.wait()
            refresh(left: 90 * day - Double(week) * 7 * day)
        }
        #expect(announced(cycle).isEmpty)
        cycle.fetches = []
        cycle.pass(6 * day)
        #expect(cycle.fetches == [.refresh(Secret("R"))], "nobody wants a token, and it is tried all the same")
        #expect(announced(cycle).isEmpty)
        refresh(left: 7 * day)
        #expect(announced(cycle) == [.seconds(7 * day)])
        cycle.life.invalidate(cycle.moment)
        cycle.pass(5)
        cycle.wait()
        refresh(left: 7 * day - 5)
        cycle.pass(6 * day)
        #expect(announced(cycle).count == 1)
    }

    @Test("a session that lasts longer when it is used does not end because nobody wants a token: one login is enough")
    func sliding() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T0", expiresIn: 60, refreshToken: "R0", refreshLife: 1800))
        for hour in 1...100 {
            cycle.pass(1349)
            #expect(cycle.fetch == nil)
            cycle.pass(1)
            #expect(cycle.fetch?.kind == .refresh(Secret("R\(hour - 1)")))
            cycle.answer(
                .response(
                    DrivenLifeCycle.response("T\(hour)", expiresIn: 60, refreshToken: "R\(hour)", refreshLife: 1800))
            )
        }
        #expect(announced(cycle).isEmpty)
        #expect(cycle.fetches.count == 100)
    }

    @Test("a server that can't be asked just then is told at once, and tried again")
    func warningWithoutServer() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T0", expiresIn: 60, refreshToken: "R0", refreshLife: 1800))
        cycle.pass(1350)
        cycle.answer(DrivenLifeCycle.status(503))
        #expect(announced(cycle) == [.seconds(450)])
        cycle.pass(60)
        #expect(cycle.fetches.count == 2)
        cycle.answer(.response(DrivenLifeCycle.response("T1", expiresIn: 60, refreshToken: "R1", refreshLife: 1800)))
        cycle.pass(1350)
        #expect(cycle.fetches.count == 3, "the new life has its own end")
    }

    @Test("a refresh token that lives for less than five minutes is not kept alive, only announced")
    func short() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T0", expiresIn: 60, refreshToken: "R0", refreshLife: 200))
        cycle.pass(150)
        #expect(cycle.fetches.isEmpty)
        #expect(announced(cycle) == [.seconds(50)])
    }

    @Test(
        "a refresh token's life of 0 has no end, and an absurd one is no trap",
        arguments: [0, -1, 1e300, .nan, .infinity])
    func endless(seconds: Double) throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        try cycle.logIn(DrivenLifeCycle.response("T1", refreshToken: "R1", refreshLife: seconds))
        #expect((cycle.status.refreshTokenExpiresIn == nil) == !(seconds > 0))
        cycle.pass(3000)
        #expect(cycle.use() == "T1")
    }

    @Test(
        "of all ends of a refresh token that servers state, by whatever names, the earliest counts",
        arguments: [
            (#""refresh_token_expires_in":90"#, 90), (#""refresh_expires_in":"80""#, 80),
            (#""refresh_token_timeout":70"#, 70), (#""authorization_expires_in":60"#, 60),
            (#""refresh_token_timeout":70,"authorization_expires_in":500"#, 70),
            (#""refresh_token_timeout":500,"authorization_expires_in":60"#, 60),
            (#""refresh_expires_in":0,"authorization_expires_in":60"#, 60), (#""refresh_expires_in":0"#, 0),
            (#""refresh_token_timeout":"soon""#, nil),
        ] as [(String, Double?)])
    func names(members: String, life: Double?) throws {
        let body = #"{"access_token":"T1","token_type":"Bearer","refresh_token":"R1",\#(members)}"#
        let response = try OAuthAccessTokenDefaultParser().parse(Array(body.utf8))
        #expect(response.refreshTokenExpiresIn == life)
        #expect(response.extra.isEmpty)
    }

    @Test("the refresh token's end outlives a restart")
    func recorded() throws {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start()
        let login = try cycle.loggedIn(DrivenLifeCycle.response("T1", refreshToken: "R1", refreshLife: 4000))
        #expect(
            login.record.refreshTokenLife
                == TokenRecord.RefreshTokenLife(issuedAt: cycle.wall, expiresAt: cycle.wall + 4000))
        var next = DrivenLifeCycle(needs: .person)
        next.wall += 3100
        next.start(stored: login.record)
        #expect(next.status.refreshTokenExpiresIn == .seconds(900))
        #expect(next.fetch != nil)
        next.answer(DrivenLifeCycle.status(500))
        #expect(announced(next) == [.seconds(900)])
        for absurd in [Int64.min, .max] {
            var record = login.record
            record.refreshTokenLife = TokenRecord.RefreshTokenLife(issuedAt: absurd, expiresAt: 0 &- absurd)
            var odd = DrivenLifeCycle(needs: .person)
            odd.start(stored: record)
            odd.pass(100)
        }
    }
}
