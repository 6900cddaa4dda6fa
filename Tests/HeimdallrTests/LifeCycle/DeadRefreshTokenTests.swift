import TestSupport
import Testing

@testable import Heimdallr

/// Servers that do not say `invalid_grant` when a refresh token is dead.
@Suite struct `A refresh token that is refused for no good reason` {
    static let refusals: [TokenLifeCycle.Outcome] = [
        DrivenLifeCycle.status(400), DrivenLifeCycle.status(401), DrivenLifeCycle.refused(.invalidRequest),
        DrivenLifeCycle.refused(.invalidRequest, status: 401), DrivenLifeCycle.refused(.invalidScope),
        DrivenLifeCycle.refused(.unauthorizedClient), DrivenLifeCycle.refused(.unsupportedGrantType),
        DrivenLifeCycle.refused(OAuthError.Code(rawValue: "tea_break")),
    ]

    static let others: [TokenLifeCycle.Outcome] = [
        DrivenLifeCycle.refused(.invalidClient), DrivenLifeCycle.refused(.invalidClient, status: 401),
        DrivenLifeCycle.status(403), DrivenLifeCycle.refused(.invalidRequest, status: 403), DrivenLifeCycle.status(404),
        DrivenLifeCycle.status(429), DrivenLifeCycle.refused(.invalidRequest, status: 429), DrivenLifeCycle.status(500),
        DrivenLifeCycle.refused(.serverError, status: 503), .fault(.network(.connect), retryAfter: nil),
    ]

    @Test(
        "a refresh token refused twice, two seconds apart, needs a sign-in; it is tried now and then, and may recover")
    func attended() {
        for refusal in Self.refusals {
            var cycle = DrivenLifeCycle(needs: .person)
            cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
            cycle.answer(refusal)
            #expect(!cycle.eventNames.contains("needs_authentication"))
            let waiter = cycle.wait()
            #expect(cycle.outcomes[waiter] == nil)
            cycle.pass(1.5)
            #expect(cycle.fetch == nil)
            cycle.pass(0.5)
            #expect(cycle.fetches.count == 2)
            cycle.answer(refusal)
            #expect(cycle.eventNames == ["token_failed", "needs_authentication"])
            #expect(cycle.outcomes[waiter] == .failure(.needsAuthentication))
            #expect(cycle.life.status(client: "c", grantType: "g", now: cycle.now).state == .needsAuthentication)
            #expect(cycle.life.refreshToken == Secret("R1"))
            for _ in 0..<3 {
                while cycle.fetch == nil { cycle.pass(1) }
                #expect(cycle.fetches.last == .refresh(Secret("R1")))
                cycle.answer(refusal)
            }
            #expect(cycle.eventNames.filter { $0 == "needs_authentication" }.count == 1)
            while cycle.fetch == nil { cycle.pass(1) }
            cycle.answer(DrivenLifeCycle.token("T2"))
            #expect(cycle.use() == "T2")
        }
    }

    @Test("a grant that needs nobody starts afresh, and nobody's request fails")
    func unattended() {
        for refusal in Self.refusals {
            var cycle = DrivenLifeCycle()
            cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
            let first = cycle.wait()
            cycle.answer(refusal)
            let second = cycle.wait()
            cycle.pass(2)
            cycle.answer(refusal)
            cycle.pass(1)
            #expect(cycle.time <= 3)
            #expect(cycle.fetches == [.refresh(Secret("R1")), .refresh(Secret("R1")), .grant])
            cycle.answer(DrivenLifeCycle.token("T1"))
            #expect(cycle.outcomes[first]?.token == "T1")
            #expect(cycle.outcomes[second]?.token == "T1")
            #expect(!cycle.eventNames.contains("needs_authentication"))
        }
    }

    @Test("once it is doubtful, the refresh token and fresh grants take turns")
    func turns() {
        var cycle = DrivenLifeCycle()
        cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
        for _ in 0..<2 {
            while cycle.fetch == nil { cycle.pass(0.5) }
            cycle.answer(DrivenLifeCycle.status(401))
        }
        while cycle.fetch == nil { cycle.pass(0.5) }
        #expect(cycle.fetches.last == .grant)
        cycle.answer(DrivenLifeCycle.status(500))
        while cycle.fetch == nil { cycle.pass(1) }
        #expect(cycle.fetches.last == .refresh(Secret("R1")))
        cycle.answer(DrivenLifeCycle.status(401))
        while cycle.fetch == nil { cycle.pass(1) }
        #expect(cycle.fetches.last == .grant)
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.use() == "T1")
        // The next time one refusal is enough.
        cycle.pass(3600)
        cycle.wait()
        #expect(cycle.fetches.last == .refresh(Secret("R1")))
        cycle.answer(DrivenLifeCycle.status(401))
        cycle.pass(1)
        #expect(cycle.fetches.last == .grant)
    }

    @Test("a refresh token that was handed in and is refused like that: somebody has to hand in a new one")
    func seed() {
        for refusal in Self.refusals {
            var cycle = DrivenLifeCycle(needs: .freshSeed)
            cycle.start()
            #expect(cycle.fetches == [.grant])
            cycle.answer(refusal)
            cycle.pass(2)
            cycle.answer(refusal)
            #expect(cycle.eventNames == ["token_failed", "needs_authentication"])
            while cycle.fetch == nil { cycle.pass(1) }
            cycle.answer(DrivenLifeCycle.token("T1", refreshToken: "R1"))
            #expect(cycle.use() == "T1")
        }
    }

    @Test("the client's own fault, 403, 429 and 5xx end no refresh token, however often they come")
    func others() {
        for fault in Self.others {
            var cycle = DrivenLifeCycle(needs: .person)
            cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
            for _ in 0..<6 {
                while cycle.fetch == nil { cycle.pass(1) }
                cycle.answer(fault)
            }
            #expect(!cycle.eventNames.contains("needs_authentication"))
            #expect(cycle.life.refreshToken == Secret("R1"))
        }
    }

    @Test("a refusal, an outage, and a refusal are two refusals")
    func outageBetween() {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.start(stored: cycle.record(nil, refreshToken: "R1"))
        for outcome in [
            DrivenLifeCycle.status(400), DrivenLifeCycle.status(503), DrivenLifeCycle.refused(.invalidRequest),
        ] {
            while cycle.fetch == nil { cycle.pass(1) }
            cycle.answer(outcome)
        }
        #expect(cycle.eventNames.last == "needs_authentication")
    }

    @Test("a secret that is written again and again ends the backoff less and less; one that helps, at once")
    func repairs() {
        for pause in [0.3, 0.9, 5.0] {
            var cycle = DrivenLifeCycle()
            cycle.start()
            func isRefused(_ cycle: inout DrivenLifeCycle) -> Bool {
                guard cycle.fetch != nil else { return false }
                cycle.answer(DrivenLifeCycle.refused(.invalidClient, status: 401))
                return true
            }
            #expect(isRefused(&cycle))
            // The first repair counts at once, in spite of the backoff.
            cycle.life.repaired(cycle.moment)
            cycle.pass(1)
            #expect(isRefused(&cycle))
            var refusals = 0
            for _ in 0..<Int(600 / pause) {
                cycle.life.repaired(cycle.moment)
                cycle.pass(pause)
                if isRefused(&cycle) { refusals += 1 }
            }
            #expect((3...24).contains(refusals), "\(refusals) in ten minutes, a new secret each \(pause) s")
            while cycle.fetch == nil { cycle.pass(1) }
            cycle.answer(DrivenLifeCycle.token("T1"))
            #expect(cycle.use() == "T1")
        }
    }

    @Test("a dead refresh token costs seconds over real sockets and in real time")
    func realTime() async throws {
        let endpoint = try TokenEndpoint { request, number in
            if request["grant_type"] == "refresh_token" { return .error("invalid_request") }
            return .token("T\(number)", refreshToken: "dead")
        }
        let store = RecordingStore(["billing": record(refreshToken: "dead")])
        let client = try makeClient(endpoint, store: store)
        let begin = ContinuousClock.now
        _ = try await client.accessToken()
        #expect(ContinuousClock.now - begin < .seconds(6))
        #expect(
            endpoint.requests.map { $0["grant_type"] } == ["refresh_token", "refresh_token", "client_credentials"])
        client.shutdown()
    }

    private func record(refreshToken: String) -> TokenRecord {
        TokenRecord(
            revision: 1, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: Secret(refreshToken))
    }
}
